#include <random>

#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

constexpr uint32_t kSeed = 123;

/// Which of `n` elements are kept: one 53-bit uniform each, keep below 1 - p.
std::vector<bool> torch_mask(int64_t n, double p) {
  std::mt19937 words(kSeed);
  std::vector<bool> keep;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t high = words(), word = high << 32 | words();
    keep.push_back(static_cast<double>(word & ((uint64_t{1} << 53) - 1)) * 0x1p-53 < 1 - p);
  }
  return keep;
}

/// The same by MKL's generator, seeded with one word: x <- 1132489760 x mod (2^31 - 1).
std::vector<bool> mkl_mask(int64_t n, double p) {
  constexpr uint64_t modulus = 2147483647;
  uint64_t x = std::mt19937(kSeed)() % modulus;
  if (x == 0) x = 1;
  std::vector<bool> keep;
  for (int64_t i = 0; i < n; ++i, x = x * 1132489760 % modulus)
    keep.push_back(static_cast<float>(static_cast<double>(x) / modulus) < static_cast<float>(1 - p));
  return keep;
}

using Mask = std::vector<bool> (*)(int64_t, double);

OpSample masked(const std::string& label, const Shape& shape, double p, RngDialect dialect, Mask mask) {
  return {.label = label,
          .inputs = {{shape}},
          .forward =
              [=](const std::vector<Tensor>& in) {
                Generator generator(kSeed, dialect);
                return dropout(in[0], p, true, generator);
              },
          .reference =
              [=](const std::vector<Values>& in) {
                const std::vector<bool> keep = mask(in[0].shape.numel(), p);
                Values y = in[0];
                for (size_t i = 0; i < keep.size(); ++i) y.data[i] *= keep[i] ? 1 / (1 - p) : 0;
                return y;
              },
          .any_layout = false};
}

/// The mask of a transposed tensor is drawn in the order of its memory.
OpSample transposed_sample() {
  return {.label = "transposed",
          .inputs = {{{3, 5}}},
          .forward =
              [](const std::vector<Tensor>& in) {
                Generator generator(kSeed);
                return dropout(t(in[0]), 0.4, true, generator);
              },
          .reference =
              [](const std::vector<Values>& in) {
                const std::vector<bool> keep = torch_mask(15, 0.4);
                Values y({5, 3});
                for (int64_t r = 0; r < 3; ++r)
                  for (int64_t c = 0; c < 5; ++c)
                    y[c * 3 + r] = keep[static_cast<size_t>(r * 5 + c)] ? in[0][r * 5 + c] / 0.6 : 0;
                return y;
              },
          .any_layout = false};
}

/// Nothing is dropped, and the generator draws nothing: a rand() after it is the seed's first.
OpSample identity(const std::string& label, double p, bool training) {
  return {label,
          {{{2, 3}}},
          [=](const std::vector<Tensor>& in) {
            Generator generator(kSeed), fresh(kSeed);
            const Tensor y = dropout(in[0], p, training, generator);
            ONESTEP_CHECK(Error, generator.u32() == fresh.u32(), "dropout case: drew a number");
            return y;
          },
          [](const std::vector<Values>& in) { return in[0]; }};
}

const RegisterOpCases registered([] {
  return OpCases{{"dropout",
                  // of a half the scale is rounded, too
                  without(&OpSample::rounds_once, {masked("half", {4, 5}, 0.5, RngDialect::torch, torch_mask),
                                                   masked("a tenth", {2, 3, 4}, 0.1, RngDialect::torch, torch_mask),
                                                   masked("dialect torch_mkl", {4, 5}, 0.3, RngDialect::torch_mkl, mkl_mask),
                                                   masked("a number", {}, 0.3, RngDialect::torch, torch_mask),
                                                   masked("nothing", {0, 3}, 0.3, RngDialect::torch, torch_mask),
                                                   transposed_sample(),
                                                   identity("p = 0", 0.0, true),
                                                   identity("not training", 0.5, false),
                                                   {"p = 1",
                                                    {{{2, 3}}},
                                                    [](const std::vector<Tensor>& in) {
                                                      Generator generator(kSeed), fresh(kSeed);
                                                      const Tensor y = dropout(in[0], 1.0, true, generator);
                                                      ONESTEP_CHECK(Error, generator.u32() == fresh.u32(),
                                                                    "dropout case: drew a number");
                                                      return y;
                                                    },
                                                    [](const std::vector<Values>& in) { return Values(in[0].shape); }}}),
                  {{"probability", [] { dropout(zeros(3), 1.5); }, "dropout: ", is_a<ConfigError>},
                   {"negative probability", [] { dropout(zeros(3), -0.1, false); }, "dropout: ", is_a<ConfigError>},
                   {"integers", [] { dropout(zeros(3, DType::int64), 0.5); }, "dropout: ", is_a<DTypeError>}}}};
});

}  // namespace
}  // namespace onestep
