// Makes and checks tests/goldens/training_hashes.json:
//   training_hashes                 prints the file again
//   training_hashes check STEPS     checks every instruction set of this machine with 1, 2, 3, 4 and 8 threads
//   training_hashes repeat STEPS N  checks N times with the instruction set and threads of the environment
#include <cstdio>
#include <exception>
#include <iostream>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "tests/bits/training_hashes.h"

using namespace onestep;

namespace {

void print_hashes() {
  nlohmann::json all;
  for (const char* config : testing::kBitConfigs) all[config] = testing::training_hashes(config, testing::kBitSteps);
  std::cout << nlohmann::json{{"made_by", "training_hashes"}, {"hashes", all}}.dump(1) << "\n";
}

/// Whether the hashes are those of the file; says so in a line.
bool check_once(int64_t steps) {
  const std::string lines = testing::differing_hashes(steps);
  std::cout << kernels::name(kernels::active_isa()) << ", " << kernels::num_threads() << " threads, " << steps
            << " steps: " << (lines.empty() ? "the same bits\n" : "other bits\n" + lines) << std::flush;
  return lines.empty();
}

bool check_all(int64_t steps) {
  bool same = true;
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::isa_supported(isa)) continue;
    for (const int threads : {1, 2, 3, 4, 8}) {
      kernels::set_isa(isa);
      kernels::set_num_threads(threads);
      same = check_once(steps) && same;
    }
  }
  return same;
}

bool repeat(int64_t steps, int64_t times) {
  bool same = true;
  for (int64_t i = 0; i < times; ++i) same = check_once(steps) && same;
  return same;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc == 1) return print_hashes(), 0;
  if (what == "check" && argc == 3) return check_all(std::stoll(argv[2])) ? 0 : 1;
  if (what == "repeat" && argc == 4) return repeat(std::stoll(argv[2]), std::stoll(argv[3])) ? 0 : 1;
  std::cerr << "usage: training_hashes [check STEPS | repeat STEPS TIMES]\n";
  return 2;
} catch (const std::exception& error) {
  std::cerr << "training_hashes: " << error.what() << "\n";
  return 1;
}
