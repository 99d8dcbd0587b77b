#include "train/log/sample_file.h"

#include <nlohmann/json.hpp>

#include "train/log/step_lines.h"

namespace onestep::train {

SampleFile::SampleFile(const std::string& path, int64_t first_step)
    : out_((cut_step_lines(path, first_step), path), OutputFile::Mode::append) {}

void SampleFile::write(int64_t step, const std::string& prompt, const std::string& continuation) {
  const nlohmann::ordered_json sample{{"step", step}, {"prompt", prompt}, {"continuation", continuation}};
  out_.write(sample.dump() + '\n');
}

}  // namespace onestep::train
