// The generator's own promises; its agreement with PyTorch is in rng_goldens_test.cpp.
#include "autograd/random/generator.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "autograd/random/random_fill.h"
#include "base/error.h"
#include "tests/support.h"

namespace onestep {
namespace {

TEST_CASE("generator: the words are the standard library's mt19937") {
  Generator g(123);
  std::mt19937 reference(123);
  for (int i = 0; i < 2000; ++i) REQUIRE(g.u32() == reference());
}

TEST_CASE("generator: a bulk draw equals single draws from any position") {
  for (const size_t skip : {0u, 1u, 3u, 623u, 624u, 625u}) {
    for (const size_t count : {0u, 1u, 2u, 623u, 624u, 625u, 1999u}) {
      CAPTURE(skip);
      CAPTURE(count);
      Generator bulk(7);
      for (size_t i = 0; i < skip; ++i) bulk.u32();
      Generator single = bulk;
      std::vector<uint32_t> words(count);
      bulk.draw(words);
      for (const uint32_t word : words) REQUIRE(word == single.u32());
      CHECK(bulk.u64() == single.u64());
    }
  }
}

TEST_CASE("generator: discard passes over as many words as it says and drawn counts them") {
  for (const uint64_t before : {0u, 1u, 623u, 624u, 1000u})
    for (const uint64_t words : {0u, 1u, 300u, 623u, 624u, 625u, 1248u, 5000u}) {
      CAPTURE(before);
      CAPTURE(words);
      Generator drawn(7), discarded(7);
      for (uint64_t i = 0; i < before; ++i) CHECK(drawn.u32() == discarded.u32());
      const uint64_t start = drawn.drawn();
      for (uint64_t i = 0; i < words; ++i) drawn.u32();
      discarded.discard(words);
      CHECK(drawn.drawn() - start == words);
      CHECK(discarded.drawn() == drawn.drawn());
      for (int i = 0; i < 1000; ++i) CHECK(drawn.u32() == discarded.u32());
    }
}

TEST_CASE("generator: fills longer than a chunk equal single draws also from an odd position") {
  Generator bulk(7);
  bulk.u32();
  Generator single = bulk;
  std::vector<double> values(1301);
  fill_uniform<double>(values, 0, 1, bulk);
  for (const double value : values) REQUIRE(value == single.d53());
  std::vector<float> floats(1301);
  fill_uniform<float>(floats, 0, 1, bulk);
  for (const float value : floats) REQUIRE(value == single.f24());
}

TEST_CASE("generator: manual_seed restarts the stream and drops the cached normal") {
  Generator g(5);
  const double first = g.normal();
  g.manual_seed(5);
  CHECK(g.normal() == first);
  CHECK(g.manual_seed((int64_t{1} << 32) + 5).normal() == first);  // only the low 32 bits count
  CHECK(g.initial_seed() == (int64_t{1} << 32) + 5);
  CHECK(Generator().initial_seed() == 67280421310721);
}

TEST_CASE("generator: the default one is seeded by the free manual_seed") {
  const Generator before = default_generator();
  manual_seed(42);
  CHECK(default_generator().u64() == Generator(42).u64());
  default_generator() = before;
}

TEST_CASE("generator: a saved state continues the stream") {
  for (const int words : {0, 1, 100, 624, 625}) {
    for (const bool half_pair : {false, true}) {
      CAPTURE(words);
      CAPTURE(half_pair);
      Generator g(-3);
      for (int i = 0; i < words; ++i) g.u32();
      if (half_pair) g.normal();
      Generator other(1, RngDialect::torch_mkl);
      other.set_state(g.state());
      CHECK(other.state() == g.state());
      CHECK(other.initial_seed() == -3);
      CHECK(other.dialect() == RngDialect::torch_mkl);
      for (int i = 0; i < 700; ++i) REQUIRE(other.normal() == g.normal());
      CHECK(other.u32() == g.u32());
    }
  }
}

// The message of the Error that set_state(state) throws, after checking that the generator is as before.
std::string refusal_of(const std::string& state) {
  Generator g(9);
  g.u32();
  const std::string before = g.state();
  const std::string message = testing::refusal([&] { g.set_state(state); });
  const bool unchanged = g.state() == before;
  CHECK(unchanged);
  return message;
}

TEST_CASE("generator: a state that is not one is refused and changes nothing") {
  Generator g(9);
  g.normal();
  const std::string good = g.state();
  const size_t words = good.rfind(' ') + 1, normal = good.rfind(' ', words - 2) + 1;
  const auto with = [&good](size_t begin, size_t count, const std::string& text) {
    return std::string(good).replace(begin, count, text);
  };
  const std::string not_a_state = "Generator::set_state: not a generator state (must begin with mt19937)";
  CHECK(refusal_of("") == not_a_state);
  CHECK(refusal_of("mt19938" + good.substr(7)) == not_a_state);
  CHECK(refusal_of("mt19937") == "Generator::set_state: the seed is not 16 hexadecimal digits: ''");
  CHECK(refusal_of(with(8, 1, "-")).starts_with("Generator::set_state: the seed "));
  CHECK(refusal_of(with(25, 8, "00000271")) == "Generator::set_state: position beyond the 624 words: 625");
  CHECK(refusal_of(with(25, 8, "000004")).starts_with("Generator::set_state: the position "));
  CHECK(refusal_of(with(normal, 16, "7ff8000000000000")) == "Generator::set_state: the cached normal is not finite");
  CHECK(refusal_of(with(normal, 16, "x")).starts_with("Generator::set_state: the cached normal "));
  CHECK(refusal_of(with(words, 4992, "")) == "Generator::set_state: needs 4992 digits of words: got 0");
  CHECK(refusal_of(good + "0").starts_with("Generator::set_state: needs "));
  CHECK(refusal_of(with(words + 8, 1, "g")).starts_with("Generator::set_state: a word "));
  CHECK(refusal_of(with(words, 4992, "7fffffff" + std::string(4984, '0'))) == "Generator::set_state: all words are zero");
}

}  // namespace
}  // namespace onestep
