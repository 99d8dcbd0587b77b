#pragma once
// Runs a program from outside and keeps what it said.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/paths.h"

namespace onestep::testing {

/// How a program ended; `status` is its exit status, or 128 + the signal that ended it.
struct ProcessResult {
  int status = 0;
  std::string out, err;
};

/// Where a program runs.
struct ProcessOptions {
  std::filesystem::path directory = ".";
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< Set on top of this process's own.
};

/// A running program; stdin is empty. `wait()` must be called once.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command, const ProcessOptions& options = {}) {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) run_child(command, options);
  }

  pid_t pid() const { return pid_; }

  /// What it has written to stdout and stderr so far, waiting until `text` is in it or nothing more comes.
  std::string said(const std::string& text) const {
    for (;;) {
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
      std::string all;
      for (std::FILE* file : {out_.get(), err_.get()}) {
        char block[4096];  // at its place: the program writes at the file's own
        off_t at = 0;
        for (ssize_t n = 0; (n = ::pread(::fileno(file), block, sizeof block, at)) > 0; at += n)
          all.append(block, static_cast<size_t>(n));
      }
      if (ended.si_pid != 0 || all.find(text) != std::string::npos) return all;
      ::usleep(10000);
    }
  }

  ProcessResult wait() const {
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out_.get()), contents(err_.get())};
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  [[noreturn]] void run_child(const std::vector<std::string>& command, const ProcessOptions& options) const {
    std::vector<char*> argv;
    for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(::fileno(out_.get()), STDOUT_FILENO);
    ::dup2(::fileno(err_.get()), STDERR_FILENO);
    if (::chdir(options.directory.c_str()) == 0) ::execvp(argv[0], argv.data());
    std::perror(argv[0]);
    ::_exit(127);
  }

  static std::string contents(std::FILE* file) {
    std::string text;
    std::rewind(file);
    char block[4096];
    for (size_t n = 0; (n = std::fread(block, 1, sizeof block, file)) > 0;) text.append(block, n);
    return text;
  }

  File out_{std::tmpfile()}, err_{std::tmpfile()};  // files, so that neither can fill up and block
  pid_t pid_ = -1;
};

/// Runs `command` (looked up in PATH) to its end.
inline ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options = {}) {
  return Process(command, options).wait();
}

/// The stdout of a program that must succeed.
inline std::string output_of(const std::vector<std::string>& command) {
  ProcessResult result = run_process(command);
  if (result.status != 0) throw std::runtime_error(command[0] + ": " + result.out + result.err);
  return std::move(result.out);
}

/// The built program with `arguments`.
inline ProcessResult run_onestep(std::vector<std::string> arguments, const ProcessOptions& options = {}) {
  arguments.insert(arguments.begin(), ONESTEP_BINARY_DIR "/onestep");
  return run_process(arguments, options);
}

/// A fresh folder that goes away with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "onestep-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed: " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace onestep::testing
