// Reads programs with PyTorch's results from standard input, one JSON object a line, and answers each with one line:
// {"verdict": ..., "step": ..., "what": ...}. `run_programs --operations` lists the ops that a step may have.
#include <iostream>
#include <string>

#include "tests/programs/interpreter.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--operations") {
    for (const std::string& name : onestep::programs::operations()) std::cout << name << '\n';
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const onestep::programs::Outcome outcome = onestep::programs::check(nlohmann::json::parse(line));
    const nlohmann::json answer = {{"verdict", name(outcome.verdict)}, {"step", outcome.step}, {"what", outcome.what}};
    std::cout << answer.dump() << std::endl;
  }
}
