#include "web/server/server.h"

#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/error.h"
#include "train/run_folder.h"

namespace onestep::web {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHost = "127.0.0.1";
constexpr size_t kThreads = 4;

// The page's scripts are its own files, its images may be drawn by them, and the token in its address goes nowhere.
const httplib::Headers kHeaders = {
    {"Cache-Control", "no-cache"},
    {"Content-Security-Policy",
     "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
     "frame-ancestors 'none'"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
};

/// 128 bits in hexadecimal.
std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 32; ++i) token += "0123456789abcdef"[device() % 16];
  return token;
}

struct RunFile {
  fs::path file;
  std::string path;  ///< In the run folder.
  uintmax_t size;
  int64_t modified;  ///< Nanoseconds since the epoch of the file system's clock: they tell one state from another.
};

struct ServedRun {
  std::string name;
  std::vector<RunFile> files;
  int64_t modified = 0;
};

std::string name_of(const fs::path& folder) { return fs::weakly_canonical(folder).filename().string(); }

/// The regular files of a run, which may be written to meanwhile: what goes away in between is left out.
ServedRun served_run(const fs::path& folder) {
  ServedRun run{.name = name_of(folder), .files = {}};
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& file = at->path();
    std::error_code gone;
    if (file.filename().string().starts_with('.') || at->symlink_status(gone).type() != fs::file_type::regular) continue;
    const uintmax_t size = fs::file_size(file, gone);
    const auto written = fs::last_write_time(file, gone);
    if (gone) continue;
    const int64_t modified = std::chrono::duration_cast<std::chrono::nanoseconds>(written.time_since_epoch()).count();
    run.files.push_back({file, file.lexically_relative(folder).generic_string(), size, modified});
    run.modified = std::max(run.modified, modified);
  }
  std::sort(run.files.begin(), run.files.end(), [](const RunFile& a, const RunFile& b) { return a.path < b.path; });
  return run;
}

/// The folders of the runs in a folder, or the one that it is.
std::vector<fs::path> run_folders(const fs::path& root) {
  if (train::is_run(root)) return {root};
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    if (fs::is_directory(at->path()) && train::is_run(at->path())) folders.push_back(at->path());
  return folders;
}

/// All runs, the last changed one first.
std::vector<ServedRun> served_runs(const fs::path& root) {
  std::vector<ServedRun> runs;
  for (const fs::path& folder : run_folders(root)) runs.push_back(served_run(folder));
  std::sort(runs.begin(), runs.end(), [](const ServedRun& a, const ServedRun& b) { return a.modified > b.modified; });
  return runs;
}

std::string runs_json(const fs::path& root) {
  auto list = nlohmann::ordered_json::array();
  for (const ServedRun& run : served_runs(root)) {
    auto files = nlohmann::ordered_json::array();
    for (const RunFile& f : run.files)
      files.push_back({{"path", f.path}, {"size", f.size}, {"modified", std::to_string(f.modified)}});
    list.push_back({{"name", run.name}, {"modified", std::to_string(run.modified)}, {"files", files}});
  }
  return list.dump();
}

/// Sends a text as it is: the library compresses bodies, and Brotli's best for one script of the page takes the processor
/// longer than all that a poll needs. What a provider gives goes out uncompressed.
void send_text(std::string text, const std::string& type, httplib::Response& response) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  response.headers.erase("Content-Type");
  response.body.clear();
  response.set_content_provider(kept->size(), type, [kept](size_t at, size_t length, httplib::DataSink& sink) {
    return sink.write(kept->data() + at, length);
  });
}

/// Sends NAME/PATH piece by piece: a checkpoint may be larger than memory. A file that its run does not have, any more, is 204:
/// that happens while one watches a run, and a browser reports a 404 as an error of the page.
void send_file(const fs::path& root, const std::string& wanted, httplib::Response& response) {
  response.status = 404;
  for (const fs::path& folder : run_folders(root)) {
    if (!wanted.starts_with(name_of(folder) + '/')) continue;
    const ServedRun run = served_run(folder);  // the others are not walked through for it
    response.status = 204;
    for (const RunFile& f : run.files) {
      if (run.name + '/' + f.path != wanted) continue;
      auto stream = std::make_shared<std::ifstream>(f.file, std::ios::binary);
      if (!*stream) return;
      response.status = -1;  // 200, or 206 for a range
      response.set_content_provider(
          f.size, "application/octet-stream", [stream](size_t at, size_t length, httplib::DataSink& sink) {
            std::vector<char> piece(std::min<size_t>(length, 1 << 20));
            stream->clear();
            stream->seekg(static_cast<std::streamoff>(at));
            stream->read(piece.data(), static_cast<std::streamsize>(piece.size()));
            return stream->gcount() > 0 && sink.write(piece.data(), static_cast<size_t>(stream->gcount()));
          });
      return;
    }
  }
}

}  // namespace

void serve(const ServerOptions& options, const std::function<void(const std::string& address)>& ready) {
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_socket_options([](int socket) {  // the library's own let two servers share a port
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const std::string base = '/' + random_token();
  const bool bound = options.port == 0 || server.bind_to_port(kHost, options.port);
  ONESTEP_CHECK(IoError, bound, "port ", options.port, ": is taken (another one, or 0 for any that is free?)");
  const int port = options.port == 0 ? server.bind_to_any_port(kHost) : options.port;
  const std::string host = std::string(kHost) + ':' + std::to_string(port);
  server.set_keep_alive_max_count(1);  // the library wakes a hundred times a second for each connection that stays open
  server.set_default_headers(kHeaders);
  // Before files, since the page has a runs.json of its own for servers without runs.
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    options.on_request();
    const bool reads = request.method == "GET" || request.method == "HEAD";
    const bool known = reads && request.get_header_value("Host") == host && request.path.starts_with(base + '/');
    const std::string path = known ? request.path.substr(base.size() + 1) : "";
    if (!known)
      response.status = 404;
    else if (path == "runs.json")
      send_text(runs_json(options.runs), "application/json", response);
    else if (path.starts_with("runs/"))
      send_file(options.runs, path.substr(5), response);
    else
      return httplib::Server::HandlerResponse::Unhandled;
    return httplib::Server::HandlerResponse::Handled;
  });
  server.set_mount_point(base, options.page.string());
  server.set_file_request_handler([](const httplib::Request&, httplib::Response& response) {
    send_text(std::move(response.body), response.get_header_value("Content-Type"), response);
  });
  ready("http://" + host + base + '/');
  ONESTEP_CHECK(IoError, server.listen_after_bind(), host, ": cannot be listened to");
}

}  // namespace onestep::web
