// A program that links the library and trains as a config says: prints the tokens a second of its steps but the first.
// Usage: steps CONFIG [--set key=value]...      (bench/busy.sh)
#include <onestep/onestep.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  using namespace onestep::train;
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> sets;
  for (int i = 3; i < argc; i += 2) sets.emplace_back(argv[i]);
  Trainer trainer(load_config(argc > 1 ? argv[1] : "", sets));
  trainer.step();
  const auto begin = Clock::now();
  while (trainer.steps_done() < trainer.config().train.steps) trainer.step();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%.0f\n", static_cast<double>((trainer.steps_done() - 1) * trainer.tokens_per_step()) / seconds);
} catch (const onestep::Error& error) {
  std::fprintf(stderr, "steps: %s\n", error.what());
  return 2;
}
