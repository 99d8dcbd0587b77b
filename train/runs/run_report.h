#pragma once
// What the report page says about a run, from its folder.
#include <filesystem>

#include "train/report/report.h"

namespace onestep::train {

/// The same text's attention maps by earlier checkpoints of the run, up to four, before those that `report` has; of a model of
/// more than 67 million parameters none.
void add_earlier_maps(ReportRun& report, const std::filesystem::path& run, Trainer& trainer);

/// A run as the page shows it. Where its checkpoint or its data is gone, stderr says what the page leaves out: with a
/// checkpoint but no data it has the parameters, without a checkpoint the curves alone. Throws Error where there is
/// no run.
ReportRun report_run(const std::filesystem::path& run);

}  // namespace onestep::train
