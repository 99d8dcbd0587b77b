#pragma once
// Serves the page (web/dist) and the runs of a folder to the browser of this machine.
#include <filesystem>
#include <functional>
#include <string>

namespace onestep::web {

struct ServerOptions {
  std::filesystem::path page;                ///< The folder of the page.
  std::filesystem::path runs;                ///< A folder of runs, or a run.
  int port = 0;                              ///< 0: any that is free.
  std::function<void()> on_request = [] {};  ///< Called for every request, by the thread that answers it.
};

/// Serves at 127.0.0.1, below a random token, until the process ends; `ready` gets the address first.
///
///     GET /TOKEN/...             the page
///     GET /TOKEN/runs.json       [{"name", "modified", "files": [{"path", "size", "modified"}]}], the last changed run first
///     GET /TOKEN/runs/NAME/PATH  a file of a run, also a range of it; 204 where it is gone
///
/// Everything else, and every request under another host's name (DNS rebinding), is 404. Throws IoError if the port is taken.
void serve(const ServerOptions& options, const std::function<void(const std::string& address)>& ready);

}  // namespace onestep::web
