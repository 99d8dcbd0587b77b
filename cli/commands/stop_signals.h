#pragma once
// Signals that end a training run after the current step, with what was trained saved.

namespace onestep::cli {

/// Exit statuses of commands that train: the loss is no longer finite; a signal ended the run.
inline constexpr int kDiverged = 1, kInterrupted = 130;

/// From now on the first SIGINT, SIGTERM or SIGHUP is remembered, and said on stderr unless `quiet`; a second SIGINT or SIGTERM
/// ends the program at once. Under nohup SIGHUP stays without effect.
void catch_stop_signals(bool quiet);

/// Whether one has come.
bool stop_signalled();

}  // namespace onestep::cli
