// XXH3-128 against values of the reference implementation (Python's xxhash 4.1.0).
#include "base/hash.h"

#include <doctest/doctest.h>

#include <string>

using namespace onestep;

TEST_CASE("hash: XXH3-128 as the reference prints it") {
  CHECK(hash_of("") == "99aa06d3014798d86001c324468d497f");
  CHECK(hash_of("a") == "a96faf705af16834e6c632b61e964e1f");
  CHECK(hash_of("onestep") == "5aaf7492f7fbfb7112fecad8b2144ca6");
}

TEST_CASE("hash: bytes that come in pieces are hashed as one") {
  std::string bytes;
  for (int i = 0; i < 300000; ++i) bytes += static_cast<char>(i * 7 % 256);
  CHECK(hash_of(bytes) == "4af1e63c1a6a3df12c9f5a6f6e250a6b");
  Hasher hasher;
  for (size_t at = 0, piece = 1; at < bytes.size(); at += piece, piece = piece * 3 % 1009)
    hasher.update(bytes.data() + at, std::min(piece, bytes.size() - at));
  CHECK(hasher.hex() == hash_of(bytes));
}
