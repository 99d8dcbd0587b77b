// onestep-page PAGE RUNS PORT, which ends with its standard input, or after a byte of that when no page asks any more: what
// `onestep play` and `onestep train --watch` start; they check the arguments. A program of its own, so that what a server is
// made of (TLS, compression) is not loaded by each training.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "web/server/server.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kUnasked{4};  ///< A page that follows a run asks every other second.
constexpr std::chrono::seconds kLongest{10};

std::atomic<Clock::time_point> last_request{Clock::now()};  // a browser may be starting

/// Lets a page that follows a run read how it ended.
void wait_until_unasked() {
  const Clock::time_point end = Clock::now() + kLongest;
  while (Clock::now() < end && Clock::now() < last_request.load() + kUnasked)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "onestep-page is started by: onestep play\n";
    return 2;
  }
  std::signal(SIGINT, SIG_IGN);  // the training ends first
  std::thread([] {
    char c;
    if (::read(STDIN_FILENO, &c, 1) > 0) wait_until_unasked();
    std::_Exit(0);
  }).detach();
  try {
    onestep::web::serve(
        {.page = argv[1], .runs = argv[2], .port = std::atoi(argv[3]), .on_request = [] { last_request = Clock::now(); }},
        [](const std::string& address) { std::cout << address << std::endl; });
  } catch (const std::exception& error) {
    std::cerr << "onestep: " << error.what() << '\n';
    return 2;
  }
}
