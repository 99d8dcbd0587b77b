#pragma once
// What a program, or a part of one, writes to a terminal, and elsewhere.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace onestep::testing {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// What stands in the buffers of this process would else be written by the next one, too.
inline void flush_stdout() {
  std::cout.flush();
  std::fflush(stdout);
}

/// All that `action` writes to a terminal of that many columns, in a process of its own, which it need not end (stdout and
/// stderr are the same there; lines end in \r\n).
inline std::string on_terminal(const std::function<void()>& action, unsigned short columns,
                               const Environment& environment = {}) {
  flush_stdout();
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid < 0) throw std::runtime_error("forkpty failed");
  if (pid == 0) {
    ::setenv("TERM", "xterm", /*overwrite=*/1);
    ::unsetenv("NO_COLOR");
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    action();
    ::_exit(0);
  }
  std::string seen;
  char block[4096];
  for (ssize_t n = 0; (n = ::read(terminal, block, sizeof block)) > 0;) seen.append(block, static_cast<size_t>(n));
  ::close(terminal);  // reading ends with EIO when the program has ended
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("a process on a terminal failed: " + seen);
  return seen;
}

/// The same for a program.
inline std::string run_in_terminal(const std::vector<std::string>& command, unsigned short columns,
                                   const Environment& environment = {}) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return on_terminal(
      [&] {
        ::execvp(argv[0], argv.data());
        ::_exit(127);
      },
      columns, environment);
}

/// All that `action` writes to stderr where that is a file, in a process of its own.
inline std::string in_file(const std::function<void()>& action) {
  flush_stdout();
  std::FILE* const file = std::tmpfile();
  const pid_t pid = ::fork();
  if (file == nullptr || pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    ::dup2(::fileno(file), STDERR_FILENO);
    action();
    ::_exit(0);
  }
  int status = 0;
  const bool ended = ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::string seen;
  char block[4096];
  std::rewind(file);
  for (size_t n = 0; (n = std::fread(block, 1, sizeof block, file)) > 0;) seen.append(block, n);
  std::fclose(file);
  if (!ended) throw std::runtime_error("a process failed: " + seen);
  return seen;
}

}  // namespace onestep::testing
