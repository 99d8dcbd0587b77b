#pragma once
// One line on stderr that renews itself on a terminal; plain lines elsewhere.
#include <string>
#include <vector>

namespace onestep {

/// The line at the bottom of a terminal, with lines that stay above it. Where stderr is no terminal (or TERM is dumb) every
/// line is a plain one. Bold and dim are left out where NO_COLOR is set (https://no-color.org).
class StatusLine {
 public:
  StatusLine();
  /// Clears the line.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_terminal() const { return terminal_; }
  /// Shows the first of `parts` that fit into the terminal's width, in place of what was shown before; elsewhere all on a line.
  void show(const std::vector<std::string>& parts);
  /// The same as a line that stays; the status line comes back below it when it is shown again.
  void print(const std::vector<std::string>& parts);
  /// Leaves the status line where it is; what follows begins on a new line.
  void keep();

 private:
  bool terminal_, styled_;
  std::string live_;  // as it is shown; empty: none
};

}  // namespace onestep
