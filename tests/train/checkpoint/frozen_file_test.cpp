// What is not trained is stored once beside the checkpoints, and is verified like them.
#include "train/checkpoint/frozen_file.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "autograd/ops.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/checkpoint.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::read;
using onestep::testing::refusal;
using onestep::testing::TemporaryFolder;
using onestep::testing::write;
namespace fs = std::filesystem;

namespace {

Config config() {
  return parse_config(R"({"data": {"kind": "task", "task": "copy", "length": 4}, "model": {"d_model": 8, "num_heads": 2,
      "context_length": 7, "dropout": 0.1}, "train": {"batch_size": 2, "freeze": ["*_emb.*", "att.W_*"]}})",
                      "run.json");
}

std::vector<std::string> names(const fs::path& file) {
  std::vector<std::string> list;
  for (const auto& [name, _] : read_safetensors(file.string()).tensors) list.push_back(name);
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("frozen file: checkpoints hold what is trained and a run resumes bit for bit") {
  const TemporaryFolder run;
  Trainer whole(config()), first(config()), second(config());
  for (int step = 0; step < 3; ++step) {
    whole.step();
    first.step();
    save_checkpoint(run.path(), {first.state(), {}}, 2);
  }
  CHECK(names(run.path() / kFrozenFile) == std::vector<std::string>{"att.W_key.weight", "att.W_query.weight",
                                                                    "att.W_value.weight", "pos_emb.weight", "tok_emb.weight"});
  CHECK(names(run.path() / "checkpoints/step-3/model.safetensors") ==
        std::vector<std::string>{"att.mask", "att.out_proj.bias", "att.out_proj.weight", "head.bias", "head.weight"});
  const auto found = newest_checkpoint(run.path());
  CHECK(found->checkpoint.trainer.frozen == first.state().frozen);
  second.load_state(found->checkpoint.trainer);
  for (int step = 0; step < 2; ++step) {
    whole.step();
    second.step();
  }
  const nn::NamedTensors want = whole.model().named_parameters(), got = second.model().named_parameters();
  for (size_t i = 0; i < want.size(); ++i) CHECK(equal(want[i].second, got[i].second));
}

TEST_CASE("frozen file: one that is missing or changed is refused by its name") {
  const TemporaryFolder run;
  Trainer trainer(config());
  save_checkpoint(run.path(), {trainer.state(), {}}, 2);
  const fs::path file = run.path() / kFrozenFile;
  const std::string whole = read(file);
  std::string changed = whole;
  changed.back() ^= 1;
  const auto refused = [&] { return refusal<IoError>([&] { newest_checkpoint(run.path()); }); };
  write(file, changed);
  CHECK(refused().starts_with(file.string() + ": is damaged: its hash is "));
  write(file, whole + "0");
  CHECK(refused().starts_with(file.string() + ": is damaged: has "));
  fs::remove(file);
  CHECK(refused().starts_with(file.string() + ": "));
  trainer.step();
  save_checkpoint(run.path(), {trainer.state(), {}}, 2);  // writes it again
  CHECK(read(file) == whole);
  CHECK(refused() == "");
}

TEST_CASE("frozen file: another run's file is shared where it holds the same tensors and never written to") {
  const TemporaryFolder folder;
  const NamedTensors tensors{{"a", arange(6).to(DType::float32).view({2, 3})}, {"b", full({}, 2.0)}};
  const NamedTensors others{{"a", tensors[0].second}, {"b", full({}, 3.0)}};
  const NamedTensors less{tensors[0]};
  for (const NamedTensors* base : {&tensors, &others, &less}) {
    const fs::path file = folder.path() / "base.safetensors", run = folder.path() / "run";
    fs::remove_all(run);
    fs::create_directory(run);
    const FileStamp stamp = write_safetensors(file.string(), *base);
    const std::string before = read(file);
    share_frozen(run, file);
    CHECK(fs::hard_link_count(file) == 2);
    const FileStamp kept = keep_frozen(run, tensors, true);
    CHECK((kept == stamp) == (base == &tensors));
    CHECK(fs::hard_link_count(file) == (base == &tensors ? 2 : 1));
    CHECK(read(file) == before);
    CHECK(read_safetensors((run / kFrozenFile).string()).tensors.size() == 2);
    CHECK(keep_frozen(run, tensors, true) == kept);
  }
}
