#include "cli/commands/page_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/open_file.h"
#include "cli/guarded.h"

extern char** environ;

namespace onestep::cli {
namespace {

namespace fs = std::filesystem;

std::pair<int, int> closing_pipe() {
  int ends[2];
  ONESTEP_CHECK(IoError, ::pipe(ends) == 0, "pipe: ", error_reason(errno));
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return {ends[0], ends[1]};
}

/// Starts a program with the given descriptors as its standard ones; its id, or -1.
pid_t spawn(std::vector<std::string> arguments, int in, int out, int err) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t process = -1;
  const int error = ::posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  return error == 0 ? process : -1;
}

std::string read_line(int fd) {
  std::string line;
  char c;
  while (::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

}  // namespace

fs::path find_page(const fs::path& named) {
  const auto is_page = [](const fs::path& folder) { return fs::is_regular_file(folder / "index.html"); };
  if (!named.empty()) {
    ONESTEP_CHECK(ConfigError, is_page(named), named.string(), ": is not the web page (it has no index.html)");
    return named;
  }
  const fs::path program = program_folder("the page");
  for (const char* place : {"../share/onestep/web", "../../web/dist"})
    if (is_page(program / place)) return fs::weakly_canonical(program / place);
  fail<ConfigError>("the web page is not built (in a checkout: ./onestep web --build-only)");
}

PageProcess::PageProcess(const fs::path& runs, const fs::path& page, int64_t port) {
  const std::vector<std::string> arguments = {(program_folder("the page") / "onestep-page").string(), page.string(),
                                              runs.string(), std::to_string(port)};
  const auto [in, alive] = closing_pipe();
  const auto [said, out] = closing_pipe();
  process_ = spawn(arguments, in, out, STDERR_FILENO);
  const int error = errno;
  ::close(in);
  ::close(out);
  alive_ = alive;
  if (process_ >= 0) address_ = read_line(said);
  ::close(said);
  ONESTEP_CHECK(IoError, process_ >= 0, arguments[0], ": cannot be started: ", error_reason(error));
  if (address_.empty()) {
    wait();
    fail<IoError>("the page cannot be served");
  }
}

PageProcess::~PageProcess() {
  if (alive_ >= 0) ::close(alive_);
  if (process_ >= 0) wait();
}

void PageProcess::finish() {
  const auto on_pipe = std::signal(SIGPIPE, SIG_IGN);  // where the server has ended already
  const bool told = ::write(alive_, "\n", 1) == 1;
  std::signal(SIGPIPE, on_pipe);
  if (told) wait();
}

int PageProcess::wait() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void open_browser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  spawn({"xdg-open", address}, nothing, nothing, nothing);
  ::close(nothing);
}

}  // namespace onestep::cli
