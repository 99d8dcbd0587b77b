#pragma once
// How many threads are worth using while other programs keep the cores busy.

namespace onestep::kernels {

/// Compares all threads with fewer by the processor time that a second of parallel regions comes to: whoever does the work, it
/// takes about the same processor time, so what gets more of it is faster. Rates are those of windows of 30 ms; in one of
/// sixteen the setting that is not in use is tried. While the cores are free nothing is metered. Reads no clock itself.
class Contention {
 public:
  static constexpr double kWindow = 0.03;  // seconds of regions

  /// The threads for a region that could use `all`.
  int threads(int all) const { return reduced_ && few_ < all ? few_ : all; }

  /// Whether charge() is to be told of every region; else end_quiet_window() of every window.
  bool metering() const { return metering_; }

  /// `running` is the part of the window in which the thread that opens the regions was running.
  void end_quiet_window(double running);

  /// Charges a region of `threads` threads that took `wall` seconds, in which they worked for `cpu` seconds altogether; all of
  /// them would be `all`.
  void charge(int threads, int all, double wall, double cpu);

 private:
  void end_window();
  void begin_trial(int all);

  bool metering_ = false;
  bool reduced_ = false;  // to few_ threads
  int few_ = 1;
  int windows_left_ = 0;                      // until the next trial
  double rate_all_ = 0, rate_few_ = 0;        // cores that all and few_ threads came to of late; 0: not known
  double wall_ = 0, asked_ = 0, worked_ = 0;  // seconds of this window; asked: of all its threads
  int all_ = 1;                               // the most threads that a region of it could use
};

}  // namespace onestep::kernels
