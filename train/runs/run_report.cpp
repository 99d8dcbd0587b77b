#include "train/runs/run_report.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "base/utf8.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"

namespace onestep::train {
namespace {

/// What `load` returns; null, with a note on stderr of what the page goes without, where it cannot.
template <class Load>
auto load_or_say(const char* without, const Load& load) -> decltype(load()) {
  try {
    return load();
  } catch (const Error& error) {
    std::cerr << "onestep: report: without " << without << ": " << escaped(error.what()) << '\n';
    return {};
  }
}

constexpr size_t kMostEarlier = 4;
constexpr int64_t kMostElements = int64_t{1} << 26;  // of a model that is loaded once more for every checkpoint

/// The folders of up to kMostEarlier checkpoints before this step, spread over the run.
std::vector<std::filesystem::path> earlier_checkpoints(const std::filesystem::path& run, int64_t step) {
  std::vector<std::filesystem::path> all = checkpoint_folders(run), some;
  std::erase_if(all, [&](const auto& folder) { return checkpoint_step(folder.filename().string()) >= step; });
  const size_t count = std::min(all.size(), kMostEarlier);
  for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

}  // namespace

void add_earlier_maps(ReportRun& report, const std::filesystem::path& run, Trainer& trainer) {
  if (trainer.model().num_parameters() > kMostElements || report.attention.empty()) return;
  std::vector<AttentionMaps> earlier;
  for (const auto& folder : earlier_checkpoints(run, report.attention.front().step)) {
    const std::string name = folder.filename().string();
    auto maps = load_or_say(("the attention maps of " + name).c_str(), [&] {
      Generator generator(trainer.config().seed);
      const FoundCheckpoint found = find_checkpoint(run, name);
      const auto model = make_trained_model(trainer.config(), trainer.model().vocab_size(), found, generator);
      return std::optional(sample_maps(trainer, *model, found.checkpoint.trainer.step));
    });
    if (maps) earlier.push_back(std::move(*maps));
  }
  report.attention.insert(report.attention.begin(), earlier.begin(), earlier.end());
}

ReportRun report_run(const std::filesystem::path& run) {
  const Config config = load_run_config(run);
  if (config.data.kind == DataKind::none) return read_report_run(run, config, nullptr);  // imported
  const auto found = load_or_say("parameters, attention maps and samples",
                                 [&] { return std::optional(choose_checkpoint(run, config, "last")); });
  if (!found) return read_report_run(run, config, nullptr);
  const auto trainer = load_or_say("attention maps and samples", [&] {
    auto loaded = std::make_unique<Trainer>(config, load_run_tokenizer(run));
    load_trained(*loaded, *found);
    return loaded;
  });
  ReportRun report = read_report_run(run, config, trainer.get());
  if (trainer) {
    report.attention.front().step = found->checkpoint.trainer.step;
    add_earlier_maps(report, run, *trainer);
    return report;
  }
  const auto model = load_or_say("parameters", [&] {
    Generator generator(config.seed);
    return make_trained_model(config, trained_vocabulary(*found), *found, generator);
  });
  if (model) report.parameters = model->named_parameters();
  return report;
}

}  // namespace onestep::train
