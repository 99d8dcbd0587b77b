#include "base/hash.h"

#define XXH_INLINE_ALL  // the header is all there is to it
#include <xxhash.h>

namespace onestep {

struct Hasher::State {
  XXH3_state_t xxh3;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }

Hasher::~Hasher() = default;

void Hasher::update(const void* bytes, size_t count) { XXH3_128bits_update(&state_->xxh3, bytes, count); }

std::string Hasher::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh3));
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

std::string hash_of(std::string_view bytes) {
  Hasher hasher;
  hasher.update(bytes.data(), bytes.size());
  return hasher.hex();
}

}  // namespace onestep
