#pragma once
// The server of the web page as a process beside this one (web/server).
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace onestep::cli {

/// The folder of the page: the one that is named, else the one that was installed with this program, or that `./onestep web`
/// built in its checkout. Throws ConfigError where there is none.
std::filesystem::path find_page(const std::filesystem::path& named = {});

/// Serves the page with the runs of a folder, or a run, until it is destroyed or this process ends.
class PageProcess {
 public:
  /// Throws IoError where the port is taken; 0 is any that is free.
  PageProcess(const std::filesystem::path& runs, const std::filesystem::path& page, int64_t port);
  ~PageProcess();
  PageProcess(const PageProcess&) = delete;
  PageProcess& operator=(const PageProcess&) = delete;

  const std::string& address() const { return address_; }
  /// Ends the server once a page that follows the run has read the last of it: within some seconds, and at once
  /// where none has asked for some.
  void finish();
  /// Waits until the server ends by itself; its exit status.
  int wait();

 private:
  pid_t process_ = -1;
  int alive_ = -1;  ///< Its standard input: it ends when this is closed.
  std::string address_;
};

/// Opens an address in the user's browser, where there is a screen.
void open_browser(const std::string& address);

}  // namespace onestep::cli
