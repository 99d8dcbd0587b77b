#pragma once
// XXH3-128 (https://xxhash.com): tells damaged bytes from whole ones. No protection against forgery.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace onestep {

/// The hash of bytes that come in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();

  void update(const void* bytes, size_t count);
  /// 32 hexadecimal digits of all bytes so far, as `xxhsum -H2` prints them.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The hash of these bytes.
std::string hash_of(std::string_view bytes);

}  // namespace onestep
