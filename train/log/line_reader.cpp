#include "train/log/line_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"

namespace onestep::train {

constexpr size_t kMaxLine = size_t{1} << 20;

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (is_whole_ = false; !is_whole_ && refill();) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    is_whole_ = end < rest_.size();
    line.append(rest_.substr(0, end));
    rest_.remove_prefix(is_whole_ ? end + 1 : end);
    bytes_ += is_whole_ ? end + 1 : end;
    if (line.size() > kMaxLine) fail<IoError>(place(), ": is longer than ", format_bytes(kMaxLine));
  }
  return is_whole_ || !line.empty();
}

bool LineReader::refill() {
  if (rest_.empty()) rest_ = {buffer_.data(), file_.read_some(buffer_.data(), buffer_.size())};
  return !rest_.empty();
}

}  // namespace onestep::train
