#include "train/text/stream_decoder.h"

#include <span>
#include <vector>

#include "base/utf8.h"

namespace onestep::train {

StreamDecoder::StreamDecoder(const Tokenizer* tokenizer) : tokenizer_(tokenizer), stream_(std::make_unique<Utf8Stream>()) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&& other) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&& other) noexcept = default;

std::string StreamDecoder::add(int64_t id) {
  if (tokenizer_ && id >= tokenizer_->vocab_size()) {
    last_.reset();
    return stream_->add('<' + std::to_string(id) + '>');
  }
  std::string piece;
  if (tokenizer_) {
    const std::vector<int64_t> both = {last_.value_or(id), id};
    piece = last_ ? tokenizer_->decode(both).substr(tokenizer_->decode(std::span(both).first(1)).size())
                  : tokenizer_->decode(std::span(both).last(1));
  } else {
    piece = last_ ? " " : "";
    piece += std::to_string(id);
  }
  last_ = id;
  return stream_->add(piece);
}

std::string StreamDecoder::finish() { return stream_->finish(); }

}  // namespace onestep::train
