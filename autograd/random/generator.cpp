#include "autograd/random/generator.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "autograd/portable_math.h"
#include "base/error.h"

namespace onestep {
namespace {

constexpr uint32_t kShift = 397;  // mt19937's middle word

// One step of the recurrence: the top bit of `u` and the low bits of `v`, times the matrix of mt19937.
uint32_t twisted(uint32_t u, uint32_t v) {
  const uint32_t mixed = (u & 0x80000000) | (v & 0x7fffffff);
  return (mixed >> 1) ^ ((0 - (v & 1)) & 0x9908b0df);
}

constexpr std::string_view kStateTag = "mt19937";
constexpr int kWordDigits = 8;

void append_hex(std::string& out, uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
}

uint64_t parse_hex(std::string_view text, size_t digits, std::string_view what) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  ONESTEP_CHECK(Error, text.size() == digits && error == std::errc{} && end == text.data() + text.size(),
                "Generator::set_state: ", what, " is not ", digits, " hexadecimal digits: '", text.substr(0, 20), "'");
  return value;
}

}  // namespace

Generator::Generator(int64_t seed, RngDialect dialect, RngRounding rounding) : dialect_(dialect), rounding_(rounding) {
  manual_seed(seed);
}

Generator& Generator::manual_seed(int64_t seed) {
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  position_ = kWords;
  cached_normal_.reset();
  seed_ = seed;
  return *this;
}

// Three loops without wrap-around, so that the compiler can vectorise them: the nearest dependence is 227 words back.
void Generator::twist() {
  uint32_t* w = words_.data();
  for (uint32_t i = 0; i < kWords - kShift; ++i) w[i] = w[i + kShift] ^ twisted(w[i], w[i + 1]);
  for (uint32_t i = kWords - kShift; i < kWords - 1; ++i) w[i] = w[i - (kWords - kShift)] ^ twisted(w[i], w[i + 1]);
  w[kWords - 1] = w[kShift - 1] ^ twisted(w[kWords - 1], w[0]);
  ++refills_;
}

void Generator::refill() {
  twist();
  temper();
  position_ = 0;
}

void Generator::temper() {
  for (uint32_t i = 0; i < kWords; ++i) {
    uint32_t y = words_[i];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680;
    y ^= y << 15 & 0xefc60000;
    outputs_[i] = y ^ y >> 18;
  }
}

double Generator::normal() {
  return normal_by([](double u1, double u2) {
    const double r = std::sqrt(-2.0 * portable::log(1 - u2)), angle = 2.0 * std::numbers::pi * u1;  // 1 - u2 is exact
    return std::pair(r * portable::cos(angle), r * portable::sin(angle));
  });
}

void Generator::draw(std::span<uint32_t> out) {
  while (!out.empty()) {
    if (position_ == kWords) refill();
    const size_t n = std::min<size_t>(out.size(), kWords - position_);
    std::copy_n(outputs_.data() + position_, n, out.data());
    position_ += static_cast<uint32_t>(n);
    out = out.subspan(n);
  }
}

void Generator::discard(uint64_t outputs) {
  const uint64_t left = kWords - position_, taken = std::min(outputs, left);
  position_ += static_cast<uint32_t>(taken);
  outputs -= taken;
  for (; outputs > kWords; outputs -= kWords) twist();
  if (outputs == 0) return;
  refill();
  position_ = static_cast<uint32_t>(outputs);
}

std::string Generator::state() const {
  std::string out(kStateTag);
  append_hex(out += ' ', static_cast<uint64_t>(seed_), 16);
  append_hex(out += ' ', position_, kWordDigits);
  out += ' ';
  if (cached_normal_)
    append_hex(out, std::bit_cast<uint64_t>(*cached_normal_), 16);
  else
    out += '-';
  out += ' ';
  for (const uint32_t word : words_) append_hex(out, word, kWordDigits);
  return out;
}

void Generator::set_state(std::string_view state) {
  const auto next_field = [&state] {
    const size_t end = std::min(state.find(' '), state.size());
    const std::string_view field = state.substr(0, end);
    state.remove_prefix(std::min(end + 1, state.size()));
    return field;
  };
  ONESTEP_CHECK(Error, next_field() == kStateTag, "Generator::set_state: not a generator state (must begin with ", kStateTag,
                ")");
  Generator restored(0, dialect_, rounding_);
  restored.seed_ = static_cast<int64_t>(parse_hex(next_field(), 16, "the seed"));
  restored.position_ = static_cast<uint32_t>(parse_hex(next_field(), kWordDigits, "the position"));
  ONESTEP_CHECK(Error, restored.position_ <= kWords, "Generator::set_state: position beyond the ", kWords,
                " words: ", restored.position_);
  if (const std::string_view normal = next_field(); normal != "-") {
    restored.cached_normal_ = std::bit_cast<double>(parse_hex(normal, 16, "the cached normal"));
    ONESTEP_CHECK(Error, std::isfinite(*restored.cached_normal_), "Generator::set_state: the cached normal is not finite");
  }
  ONESTEP_CHECK(Error, state.size() == size_t{kWords} * kWordDigits, "Generator::set_state: needs ", kWords * kWordDigits,
                " digits of words: got ", state.size());
  for (uint32_t& word : restored.words_) {
    word = static_cast<uint32_t>(parse_hex(state.substr(0, kWordDigits), kWordDigits, "a word"));
    state.remove_prefix(kWordDigits);
  }
  // From all zeros (31 bits of the first word do not count) the recurrence never leaves zero.
  ONESTEP_CHECK(Error,
                (restored.words_[0] & 0x80000000) ||
                    std::any_of(restored.words_.begin() + 1, restored.words_.end(), [](uint32_t word) { return word != 0; }),
                "Generator::set_state: all words are zero");
  restored.temper();
  *this = restored;
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

Generator& manual_seed(int64_t seed) { return default_generator().manual_seed(seed); }

}  // namespace onestep
