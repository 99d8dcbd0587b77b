// onestep-page PAGE RUNS PORT, which ends with its standard input: what `onestep play` and `onestep train --watch` start; they
// check the arguments. A program of its own, so that what a server is made of (TLS, compression) is not loaded by each
// training.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "web/server/server.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "onestep-page is started by: onestep play\n";
    return 2;
  }
  std::signal(SIGINT, SIG_IGN);  // the training ends first
  std::thread([] {
    char c;
    while (::read(STDIN_FILENO, &c, 1) > 0) {
    }
    std::_Exit(0);
  }).detach();
  try {
    onestep::web::serve({.page = argv[1], .runs = argv[2], .port = std::atoi(argv[3])},
                        [](const std::string& address) { std::cout << address << std::endl; });
  } catch (const std::exception& error) {
    std::cerr << "onestep: " << error.what() << '\n';
    return 2;
  }
}
