// Sweeps: which runs a grid has, what they are called, and what a grid cannot be.
#include "train/runs/sweep.h"

#include <doctest/doctest.h>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/run_folder.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;
using Strings = std::vector<std::string>;

namespace {

const std::string kSentence = ONESTEP_SOURCE_DIR "/configs/sentence.json";

Strings names_of(const std::vector<SweepRun>& runs) {
  Strings names;
  for (const SweepRun& run : runs) names.push_back(run.name);
  return names;
}

}  // namespace

TEST_CASE("sweep: values are separated by the commas outside of brackets and strings") {
  const auto values = [](const std::string& list) { return parse_axis("optimizer.betas=" + list).values; };
  CHECK(values("1e-3") == Strings{"1e-3"});
  CHECK(values("1,2,3") == Strings{"1", "2", "3"});
  CHECK(values("[0.9,0.99],[0.8,0.9]") == Strings{"[0.9,0.99]", "[0.8,0.9]"});
  CHECK(values(R"("a,b","c\",d",e)") == Strings{R"("a,b")", R"("c\",d")", "e"});
  CHECK(parse_axis("data.path=a=b.txt").values == Strings{"a=b.txt"});
  const auto error = [](const std::string& text) { return refusal<ConfigError>([&] { parse_axis(text); }); };
  CHECK(error("optimizer.lr") == "--grid optimizer.lr: has no = (write --grid section.key=value,value)");
  CHECK(error("optimizer.rl=1") == "--grid optimizer.rl=1: unknown key optimizer.rl (did you mean optimizer.lr?)");
  for (const char* empty : {"seed=", "seed=1,", "seed=,1", "seed=1,,2"})
    CHECK(error(empty) == std::string("--grid ") + empty + ": a value is empty");
}

TEST_CASE("sweep: a grid has every combination, with the config that --set would give") {
  const auto runs =
      sweep_runs(kSentence, {"train.steps=7"}, {parse_axis("optimizer.lr=1e-3,0.1"), parse_axis("model.num_heads=1,2,4")});
  CHECK(names_of(runs) == Strings{"lr=1e-3,num_heads=1", "lr=1e-3,num_heads=2", "lr=1e-3,num_heads=4", "lr=0.1,num_heads=1",
                                  "lr=0.1,num_heads=2", "lr=0.1,num_heads=4"});
  CHECK(runs[4].values == Strings{"0.1", "2"});
  for (const SweepRun& run : runs)
    CHECK(run.config ==
          load_config(kSentence, {"train.steps=7", "optimizer.lr=" + run.values[0], "model.num_heads=" + run.values[1]}));
  CHECK(names_of(sweep_runs(kSentence, {}, {parse_axis("model.kind=attention,gpt"), parse_axis("schedule.kind=linear")})) ==
        Strings{"model.kind=attention,schedule.kind=linear", "model.kind=gpt,schedule.kind=linear"});
  CHECK(names_of(sweep_runs(kSentence, {}, {parse_axis("optimizer.betas=[0.9,0.95]")})) == Strings{"betas=_0.9_0.95_"});
}

TEST_CASE("sweep: grids that cannot be trained are refused as a whole") {
  const auto error = [](const Strings& grids) {
    return refusal<ConfigError>([&] {
      std::vector<SweepAxis> axes;
      for (const std::string& grid : grids) axes.push_back(parse_axis(grid));
      sweep_runs(kSentence, {}, axes);
    });
  };
  CHECK(error({"seed=1,2", "seed=3"}) == "--grid: seed is given twice");
  CHECK(error({"seed=1,1"}) == "--grid: two runs would be called seed=1");
  CHECK(error({"model.num_heads=2,3"}).starts_with("--grid model.num_heads=3: /model/num_heads: "));
  Strings many;
  for (const char* key : {"seed", "train.steps", "train.batch_size", "optimizer.lr"})
    many.push_back(std::string(key) + "=1,2,3,4,5,6");
  CHECK(error(many) == "--grid: more than 1000 runs");
}

TEST_CASE("sweep: a run continues with what is given and differs") {
  const testing::TemporaryFolder folder;
  const auto run = folder.path() / "run";
  { const RunLock lock = create_run(run, load_config(kSentence, {"schedule.kind=cosine"}), nullptr); }
  CHECK(changes(run, load_config(kSentence, {"schedule.kind=cosine"})).empty());
  CHECK(changes(run, load_config(kSentence, {"schedule.kind=cosine", "train.steps=900"})) == Strings{"train.steps=900"});
  CHECK(changes(run, load_config(kSentence, {"optimizer.lr=0.5"})) == Strings{"optimizer.lr=0.5"});
}
