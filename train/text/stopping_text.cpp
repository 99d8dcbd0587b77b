#include "train/text/stopping_text.h"

#include <algorithm>
#include <utility>

namespace onestep::train {
namespace {

/// The length of the longest end of `text` that is a beginning of `word`, but not all of it.
size_t overlap(const std::string& text, const std::string& word) {
  size_t length = std::min(text.size(), word.size() - 1);
  while (!text.ends_with(std::string_view(word).substr(0, length))) --length;
  return length;
}

}  // namespace

std::string StoppingText::add(int64_t id) {
  if (stopped_) return {};
  if (std::find(stops_.ids.begin(), stops_.ids.end(), id) != stops_.ids.end()) {
    stopped_ = true;
    return std::exchange(held_, {}) + text_.finish();
  }
  held_ += text_.add(id);
  return release();
}

std::string StoppingText::finish() {
  if (stopped_) return {};
  held_ += text_.finish();
  const std::string last = release();
  return stopped_ ? last : last + std::exchange(held_, {});
}

std::string StoppingText::release() {
  size_t first = std::string::npos, pending = 0;
  for (const std::string& word : stops_.strings) {
    first = std::min(first, held_.find(word));
    pending = std::max(pending, overlap(held_, word));
  }
  stopped_ = first != std::string::npos;
  std::string out = held_.substr(0, stopped_ ? first : held_.size() - pending);
  held_.erase(0, stopped_ ? held_.size() : out.size());
  return out;
}

}  // namespace onestep::train
