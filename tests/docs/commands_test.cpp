// The command lines of the pages about several ranks and about speed, each on something small.
#include "tests/cli/ranks.h"
#include "tests/docs/command_lines.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

TEST_CASE("pages: the command lines about several ranks run") {
  if (skips_without_ci()) return;
  if (skips()) return;
  const CheckoutFolder folder;
  std::string config = kConfig;
  config.replace(config.find("\"grad_accumulation\": 5"), 22, "\"grad_accumulation\": 8");  // a micro-batch for each rank
  std::ofstream(folder.path() / "CONFIG") << config;
  std::ofstream(folder.path() / "hosts") << "localhost slots=8\n";
  fs::create_symlink("runs/CONFIG", folder.path() / "RUN");
  const std::string lines = command_lines("docs/distributed.md");
  const ProcessResult result = folder.run(R"sh(
sudo() { echo "sudo $*"; }
onestep() { build/release/onestep "$@"; }
mpirun() {
  local steps=2
  [[ $* == *--resume* ]] && steps=4
  ASAN_OPTIONS=detect_leaks=0 command mpirun --oversubscribe --allow-run-as-root --bind-to none "$@" \
    --set train.steps=$steps
}
)sh",
                                          lines);
  CHECK(contains(lines, "mpirun -n 8 --hostfile hosts"));
  CHECK_MESSAGE(result.status == 0, lines, result.out, result.err);
  CHECK(contains(result.out, "sudo apt-get install libopenmpi-dev openmpi-bin"));
  CHECK(contains(result.err, "resuming from RUN/checkpoints/step-2"));
  CHECK(fs::exists(folder.path() / "RUN/checkpoints/step-4/model.safetensors"));
}

TEST_CASE("pages: the command lines about fine-tuning run") {
  if (skips_without_ci()) return;
  const CheckoutFolder folder;
  const std::string lines = command_lines("docs/finetuning.md");
  const ProcessResult result = folder.run(R"sh(
onestep() {
  local few=()
  [[ $1 == train ]] && few=(--set train.steps=3 --set train.eval_batches=1)
  build/release/onestep "$@" "${few[@]}"
}
)sh",
                                          lines);
  CHECK_MESSAGE(result.status == 0, lines, result.out, result.err);
  CHECK(contains(lines, "--set train.init_from=runs/base --out runs/helper"));
  CHECK(contains(result.out, "of 24 predictions on validation texts"));
  CHECK(contains(result.out, "label, predicted:  bad  good\n"));
  CHECK(contains(result.out, "predictions on validation answers"));
  for (const char* made : {"runs/reviews/report.html", "exports/helper/model.safetensors", "exports/helper.gguf",
                           "exports/merged/model.safetensors", "exports/adapter/adapter_model.safetensors"})
    CHECK_MESSAGE(fs::exists(folder.path() / made), made);
  if (!in_ci()) return;  // loading the libraries takes seconds

  const std::string python = code_lines("docs/finetuning.md", "python");
  CHECK(contains(python, R"(from_pretrained("exports/base"), "exports/adapter"))"));
  const ProcessResult loaded = folder.run("",
                                          "python3 -c 'import peft, transformers' || { echo 0 parameters; exit; }\n"
                                          "python3 - <<'end'\n" +
                                              python + "end\n");
  CHECK_MESSAGE((loaded.status == 0 && contains(loaded.out, " parameters\n")), loaded.out, loaded.err);
}

TEST_CASE("pages: the command lines about speed run") {
  if (skips_without_ci()) return;
  const CheckoutFolder folder;
  std::ofstream(folder.path() / "CONFIG") << kConfig;
  const std::string lines = command_lines("docs/performance.md");
  const ProcessResult result = folder.run(R"sh(
onestep() {
  local few=()
  case $1 in
    bench) few=(--budget 0.001 --layers 1 --heads 2 --embd 8 --ctx 4) ;;
    train) few=(--set train.steps=2) ;;
  esac
  build/release/onestep "$@" "${few[@]}"
}
compare() {
  if command -v python3 >/dev/null; then
    bench/compare.py small --only scalar --rounds 1 --budget 0.001 --onestep build/release/onestep "$@"
  else
    echo "skipped: python3 is not installed"
  fi
}
)sh",
                                          lines);
  CHECK(contains(lines, "compare  "));
  CHECK_MESSAGE(result.status == 0, lines, result.out, result.err);
}

}  // namespace
}  // namespace onestep::testing
