#include <cmath>

#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

constexpr RotaryScaling kLinear{RotaryScaling::Kind::linear, 4.0};
constexpr RotaryScaling kLlama3{RotaryScaling::Kind::llama3, 8.0, 1.0, 4.0, 64};

/// As transformers' modeling_rope_utils.py puts it: by wavelengths.
double frequency(double theta, double exponent, const RotaryScaling& s) {
  const double f = std::pow(theta, exponent);
  if (s.kind == RotaryScaling::Kind::none) return f;
  const double wave = 2 * std::acos(-1.0) / f, context = static_cast<double>(s.original_context);
  if (s.kind == RotaryScaling::Kind::linear || wave > context / s.low_freq_factor) return f / s.factor;
  if (wave < context / s.high_freq_factor) return f;
  const double smooth = (context / wave - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) / s.factor * f + smooth * f;
}

OpSample sample_of(const std::string& label, const Shape& shape, int64_t first_position = 0, double theta = 10000.0,
                   const RotaryScaling& scaling = {}) {
  return {label,
          {{shape}},
          [=](const std::vector<Tensor>& in) { return rotary_embedding(in[0], first_position, theta, scaling); },
          [=](const std::vector<Values>& in) {
            const Values& x = in[0];
            const int64_t tokens = shape[shape.rank() - 2], d = shape.back(), half = d / 2;
            Values y(shape);
            for (int64_t row = 0; row < (d > 0 ? shape.numel() / d : 0); ++row)
              for (int64_t i = 0; i < half; ++i) {
                const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(d);
                const double angle = static_cast<double>(first_position + row % tokens) * frequency(theta, exponent, scaling);
                const double a = x[row * d + i], b = x[row * d + half + i];
                y[row * d + i] = a * std::cos(angle) - b * std::sin(angle);
                y[row * d + half + i] = a * std::sin(angle) + b * std::cos(angle);
              }
            return y;
          }};
}

const RegisterOpCases registered([] {
  return OpCases{
      {"rotary_embedding",
       {sample_of("heads", {2, 3, 5, 4}), sample_of("one matrix", {40, 6}), sample_of("later positions", {3, 8}, 1000),
        sample_of("another theta", {7, 10}, 3, 500.0), sample_of("one pair", {5, 2}), sample_of("far away", {2, 4}, 10000),
        sample_of("linear scaling", {20, 6}, 5, 10000.0, kLinear), sample_of("llama3 scaling", {20, 16}, 5, 500.0, kLlama3),
        sample_of("no tokens", {2, 0, 4}), sample_of("no features", {3, 0})},
       {{"odd",
         [] {
           rotary_embedding(zeros({2, 3}));
         },
         "rotary_embedding: needs [..., tokens, features] with an even number of features: got [2, 3]"},
        {"vector", [] { rotary_embedding(zeros(4)); }, "rotary_embedding: ", is_a<ShapeError>},
        {"integers",
         [] {
           rotary_embedding(zeros({2, 4}, DType::int64));
         },
         "rotary_embedding: ", is_a<DTypeError>},
        {"position",
         [] {
           rotary_embedding(zeros({2, 4}), -1);
         },
         "rotary_embedding: first_position cannot be negative: got -1"},
        {"position too large",
         [] {
           rotary_embedding(zeros({2, 4}), INT64_MAX - 1);
         },
         "rotary_embedding: first_position is too large for 2 tokens: got 9223372036854775806"},
        {"theta",
         [] {
           rotary_embedding(zeros({2, 4}), 0, 0.5);
         },
         "rotary_embedding: theta must be at least 1: got 0.5"},
        {"factor",
         [] {
           rotary_embedding(zeros({2, 4}), 0, 10.0, {RotaryScaling::Kind::linear, 0.5});
         },
         "rotary_embedding: the factor of scaling must be at least 1: got 0.5"},
        {"frequencies",
         [] {
           rotary_embedding(zeros({2, 4}), 0, 10.0, {RotaryScaling::Kind::llama3, 2.0, 4.0, 1.0, 64});
         },
         "rotary_embedding: llama3 scaling needs 0 < low_freq_factor < high_freq_factor and original_context > 0: got 4, 1 and "
         "64"}}}};
});

}  // namespace
}  // namespace onestep
