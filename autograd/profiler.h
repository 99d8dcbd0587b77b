#pragma once
// Where time goes: how long each op takes, forwards and backwards, with its arithmetic and the memory it goes through.
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "autograd/node.h"

namespace onestep {

/// While it lives, the time of this thread goes to the op that it ends with: an op is charged from the end of the one before
/// (torch.profiler, for whole ops only). Ops under NoGradGuard are charged to what comes next.
class Profiler {
 public:
  struct Entry {
    std::string name;
    int64_t calls = 0;
    double seconds = 0;
    double flops = 0;  ///< Of matrix products: 2 m n k each.
    double bytes = 0;  ///< Of the tensors that go in and come out.
  };

  Profiler();
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// The newest profiler of this thread, or nullptr.
  static Profiler* active();
  /// Charges the time since the last mark to `name`.
  void mark(const std::string& name, double bytes = 0);
  /// What was charged so far, the longest first.
  std::vector<Entry> entries() const;

 private:
  std::map<std::string, Entry> entries_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double flops_;
  Profiler* outer_;
};

/// Bytes of the elements of x; 0 if it is undefined.
double bytes_of(const Tensor& x);

/// Marks the end of a piece of work that is no op; does nothing without a profiler.
void profile_mark(const char* name);

/// A table of entries: calls, milliseconds, share, GFLOP/s, GB/s.
std::string profile_table(const std::vector<Profiler::Entry>& entries);

}  // namespace onestep
