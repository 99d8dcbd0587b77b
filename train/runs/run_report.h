#pragma once
// What the report page tells of a run, from its folder.
#include <filesystem>

#include "train/report/report.h"

namespace onestep::train {

/// The same text's attention maps by earlier checkpoints of the run, up to four, before those that `report` has; of a model of
/// more than 67 million parameters none.
void add_earlier_maps(ReportRun& report, const std::filesystem::path& run, Trainer& trainer);

/// A run as the page shows it. Where its checkpoint or its data is gone, stderr is told what the page goes without: of a
/// checkpoint without its data there are the parameters, of a run without a checkpoint the curves. Throws Error where there is
/// no run.
ReportRun report_run(const std::filesystem::path& run);

}  // namespace onestep::train
