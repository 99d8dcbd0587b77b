#pragma once
// Runs a program on a terminal of its own.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace onestep::testing {

/// All that `command` writes to a terminal of that many columns (stdout and stderr are the same there; lines end in \r\n).
inline std::string run_in_terminal(const std::vector<std::string>& command, unsigned short columns,
                                   const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid < 0) throw std::runtime_error("forkpty failed");
  if (pid == 0) {
    std::vector<char*> argv;
    for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::setenv("TERM", "xterm", /*overwrite=*/1);
    ::unsetenv("NO_COLOR");
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  std::string seen;
  char block[4096];
  for (ssize_t n = 0; (n = ::read(terminal, block, sizeof block)) > 0;) seen.append(block, static_cast<size_t>(n));
  ::close(terminal);  // reading ends with EIO when the program has ended
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(command[0] + " failed: " + seen);
  return seen;
}

}  // namespace onestep::testing
