#include "train/runs/run_report.h"

#include <iostream>
#include <memory>
#include <optional>

#include "base/utf8.h"
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

}  // namespace

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
  if (trainer) return report;
  const auto model = load_or_say("parameters", [&] {
    Generator generator(config.seed);
    return make_trained_model(config, trained_vocabulary(*found), *found, generator);
  });
  if (model) report.parameters = model->named_parameters();
  return report;
}

}  // namespace onestep::train
