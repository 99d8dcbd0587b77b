// `onestep play` and `train --watch`: what they serve, to whom, and until when.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/process.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using namespace onestep::testing;

namespace {

const std::string kSentenceConfig = ONESTEP_SOURCE_DIR "/configs/sentence.json";
constexpr const char* kPage = "<!doctype html><title>the page</title>\n";

/// `http://HOST:PORT/TOKEN/` in what a program said.
struct Address {
  std::string host, base;
  int port;
};

Address address_in(const std::string& said) {
  const size_t begin = said.find("http://127.0.0.1:");
  REQUIRE_MESSAGE(begin != std::string::npos, said);
  const size_t host = begin + 7, base = said.find('/', host), end = said.find('/', base + 1);
  const std::string name = said.substr(host, base - host);
  return {name, said.substr(base, end + 1 - base), std::stoi(name.substr(name.find(':') + 1))};
}

struct Reply {
  int status = 0;  ///< 0: nobody listens.
  std::string head, body;
};

Reply request(const Address& to, const std::string& path, const std::string& more = "", const std::string& method = "GET",
              std::string host = "") {
  if (host.empty()) host = to.host;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(to.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string all;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string text =
        method + ' ' + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nContent-Length: 0\r\n" + more + "\r\n";
    REQUIRE(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
    char block[4096];
    for (ssize_t n = 0; (n = ::recv(fd, block, sizeof block, 0)) > 0;) all.append(block, static_cast<size_t>(n));
  }
  ::close(fd);
  if (all.empty()) return {};
  const size_t end = all.find("\r\n\r\n");
  return {std::stoi(all.substr(9, 3)), all.substr(0, end), all.substr(end + 4)};
}

/// A page, a run and what is none.
struct Served {
  TemporaryFolder folder;
  fs::path page = folder.path() / "page", runs = folder.path() / "runs";
  Served() {
    for (const fs::path& made : {page, runs / "notes"}) fs::create_directories(made);
    write(page / "index.html", kPage);
    write(page / "runs.json", "null");  // for servers without runs
    write(runs / "notes" / "secret.txt", "secret\n");
    write(folder.path() / "outside.txt", "secret\n");
    const ProcessResult result = run_onestep({"train", kSentenceConfig, "--out", (runs / "first").string(), "--quiet", "--set",
                                              "train.steps=3", "--set", "train.log_every=1"});
    REQUIRE_MESSAGE(result.status == 0, result.err);
    write(runs / "first" / ".hidden", "secret\n");
    fs::create_symlink(folder.path() / "outside.txt", runs / "first" / "link.txt");
  }
};

}  // namespace

TEST_CASE("play: serves the page and the runs, and nothing else") {
  const Served place;
  const Process server({ONESTEP_BINARY_DIR "/onestep", "play", place.runs.string(), "--page", place.page.string()});
  const Address to = address_in(server.said("/\n"));
  const Reply page = request(to, to.base);
  CHECK(page.status == 200);
  CHECK(page.body == kPage);
  CHECK(contains(page.head, "Referrer-Policy: no-referrer"));
  CHECK(contains(page.head, "Content-Type: text/html"));
  for (const char* path : {"", "runs.json"})  // compression would take the processors of a training
    CHECK(!contains(request(to, to.base + path, "Accept-Encoding: gzip, br\r\n").head, "Content-Encoding"));

  const auto runs = nlohmann::json::parse(request(to, to.base + "runs.json").body);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]["name"] == "first");
  std::vector<std::string> paths;
  for (const auto& file : runs[0]["files"]) {
    paths.push_back(file["path"]);
    CHECK(file["size"] == fs::file_size(place.runs / "first" / paths.back()));
    CHECK(request(to, to.base + "runs/first/" + paths.back()).body == read(place.runs / "first" / paths.back()));
  }
  CHECK(std::find(paths.begin(), paths.end(), "metrics.jsonl") != paths.end());
  CHECK(std::find(paths.begin(), paths.end(), "link.txt") == paths.end());
  const Reply part = request(to, to.base + "runs/first/metrics.jsonl", "Range: bytes=2-5\r\n");
  CHECK(part.status == 206);
  CHECK(part.body == read(place.runs / "first" / "metrics.jsonl").substr(2, 4));

  for (const char* path : {"", "runs.json", "runs/first/config.json"}) {
    CHECK(request(to, std::string("/") + path).status == 404);  // without the token
    CHECK(request(to, "/0123456789abcdef0123456789abcdef/" + std::string(path)).status == 404);
    CHECK(request(to, to.base + path, "", "GET", "example.org:" + std::to_string(to.port)).status == 404);
    CHECK(request(to, to.base + path, "", "POST").status == 404);
  }
  for (const char* path :
       {"runs/notes/secret.txt", "runs/first/.hidden", "runs/first/link.txt", "runs/first/../notes/secret.txt",
        "runs/../../outside.txt", "../outside.txt", "%2e%2e/outside.txt", "runs/first/", "runs/first"}) {
    const Reply reply = request(to, to.base + path);
    CHECK_MESSAGE(reply.status == (std::string(path).starts_with("runs/first/") ? 204 : 404), path);
    CHECK(!contains(reply.body, "secret"));
  }
  ::kill(server.pid(), SIGINT);
  CHECK(server.wait().status == 128 + SIGINT);
  while (request(to, to.base).status != 0) ::usleep(10000);  // the server ends with the program
}

TEST_CASE("play: bad arguments") {
  const Served place;
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "play");
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(contains(refused({(place.runs / "none").string()}), "none: is not a folder of runs"));
  CHECK(contains(refused({place.runs.string(), "--page", place.runs.string()}), "runs: is not the web page"));
  CHECK(contains(refused({"--port", "65536"}), "--port: "));
  const Process server({ONESTEP_BINARY_DIR "/onestep", "play", place.runs.string(), "--page", place.page.string()});
  const Address to = address_in(server.said("/\n"));
  const std::string taken = std::to_string(to.port);
  CHECK(
      contains(refused({place.runs.string(), "--page", place.page.string(), "--port", taken}), "port " + taken + ": is taken"));
  ::kill(server.pid(), SIGTERM);
  server.wait();
}

TEST_CASE("train: --watch serves the run while it trains, and how it ended to who follows it") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "bin");  // as it is installed
  for (const char* program : {"onestep", "onestep-page"})
    fs::copy_file(fs::path(ONESTEP_BINARY_DIR) / program, folder.path() / "bin" / program);
  const std::string program = (folder.path() / "bin" / "onestep").string(), run = (folder.path() / "run").string();
  const std::vector<std::string> command = {program, "train", kSentenceConfig,       "--watch", "--out",
                                            run,     "--set", "train.steps=1000000", "--set",   "train.log_every=1"};
  const ProcessResult without = run_process(command);
  CHECK(without.status == 2);
  CHECK(contains(without.err, "the web page is not built"));
  CHECK(!fs::exists(run));

  fs::create_directories(folder.path() / "share" / "onestep" / "web");
  write(folder.path() / "share" / "onestep" / "web" / "index.html", kPage);
  const Process training(command);
  const std::string said = training.said("#/training?watch=run\n");
  const Address to = address_in(said);
  CHECK(request(to, to.base).body == kPage);
  while (!contains(request(to, to.base + "runs/run/metrics.jsonl").body, "\"step\":3,")) ::usleep(10000);
  ::kill(training.pid(), SIGINT);
  CHECK(training.wait().status == 130);
  CHECK(request(to, to.base).status == 0);

  const Process short_training({program, "train", kSentenceConfig, "--watch", "--out", run + "2", "--set", "train.steps=20"});
  const Address followed = address_in(short_training.said("#/training?watch=run2\n"));
  short_training.said("run folder ");
  CHECK(request(followed, followed.base + "runs/run2/summary.json").status == 200);
  CHECK(short_training.wait().status == 0);
  CHECK(request(followed, followed.base).status == 0);
}
