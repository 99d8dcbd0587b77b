#include "train/text/chunked_reader.h"

#include "train/text/pretokenizer.h"

namespace onestep::train {
namespace {

constexpr size_t kPartBytes = 2 * kLongestWord, kMostLeft = size_t{64} << 20;

}  // namespace

void for_each_part(const ReadBytes& read, const TakePart& take) {
  std::string buffer;
  TextPart part{{}, false, 0};
  while (!part.last) {
    const size_t left = buffer.size();
    buffer.resize(left + kPartBytes);
    const size_t got = read(buffer.data() + left, kPartBytes);
    buffer.resize(left + got);
    part.text = buffer;
    part.last = got == 0;
    const size_t taken = take(part);
    buffer.erase(0, taken);
    part.offset += static_cast<int64_t>(taken);
    if (buffer.size() > kMostLeft) throw EncodeError(part.offset, "a word of more than 64 MiB");
  }
}

}  // namespace onestep::train
