// Time and memory of the variants of causal multi-head attention, with and without returning the attention weights. All take
// turns on each shape, and the table gives the medians. Usage: attention [rounds] [threads]
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "attention/causal_self_attention.h"
#include "attention/einsum_attention.h"
#include "attention/multi_head_attention.h"
#include "autograd/kernels/kernels.h"
#include "autograd/memory.h"
#include "base/machine.h"
#include "bench/measure.h"

namespace {

using namespace onestep;
using attention::Attention;
using bench::take_turns;

struct Size {
  int64_t batch, tokens, width, heads;
};

constexpr Size kSizes[] = {{12, 64, 128, 4}, {4, 256, 384, 6}, {1, 1024, 768, 12}};

struct Variant {
  const char* name;
  const char* steps;  ///< what forward(x) does
  std::unique_ptr<Attention> module;
};

/// All variants; the wrapper alone has no output projection.
std::vector<Variant> variants(const Size& s) {
  using namespace attention;
  const int64_t d = s.width;
  std::vector<Variant> all;
  all.push_back(
      {"wrapper", "fused, per head", std::make_unique<MultiHeadAttentionWrapper>(d, d / s.heads, s.tokens, 0.0, s.heads)});
  all.push_back({"split", "fused, mask", std::make_unique<MultiHeadAttention>(d, d, s.tokens, 0.0, s.heads)});
  const attention::Options options{.d_in = d, .d_out = d, .context_length = s.tokens, .num_heads = s.heads};
  all.push_back({"fused QKV", "fused, causal", std::make_unique<CausalSelfAttention>(options)});
  all.push_back({"einsum", "unfused", std::make_unique<MultiHeadAttentionEinsum>(d, d, s.tokens, 0.0, s.heads)});
  return all;
}

/// One forward pass over x; with `grad` also the backward pass to x and all parameters.
void pass(Attention& module, Tensor& x, bool weights, const Tensor& grad) {
  attention::AttentionResult result;
  if (weights)
    result = module.forward_with_weights(x);
  else
    result.context = module.forward(x);
  if (!grad.defined()) return;
  result.context.backward(grad);
  module.zero_grad();
  x.zero_grad();
}

/// Peak MiB of a call beyond what is in use before it.
double peak_mib(const std::function<void()>& call) {
  memory::reset_peak();
  const int64_t before = memory::stats().live_bytes;
  call();
  return static_cast<double>(memory::stats().peak_bytes - before) / (1 << 20);
}

void print_table(const Size& s, int rounds) {
  std::printf("\nB = %d, T = %d, d = %d, H = %d\n%-10s %-8s %-17s %11s %11s %11s %11s\n", static_cast<int>(s.batch),
              static_cast<int>(s.tokens), static_cast<int>(s.width), static_cast<int>(s.heads), "variant", "weights", "steps",
              "forward ms", "+ backward", "forward MiB", "+ backward");
  Generator generator(1);
  Tensor x = randn({s.batch, s.tokens, s.width}, generator).requires_grad_();
  const Tensor grad = randn(x.shape(), generator);
  const std::vector<Variant> all = variants(s);
  std::vector<std::function<void()>> calls;
  for (const Variant& v : all) {
    Attention& module = *v.module;
    for (const bool weights : {false, true}) {
      calls.push_back([&module, &x, weights] {
        const NoGradGuard no_grad;
        pass(module, x, weights, {});
      });
      calls.push_back([&module, &x, &grad, weights] { pass(module, x, weights, grad); });
    }
  }
  const double work = static_cast<double>(s.batch * s.tokens * s.width * (s.width + s.tokens));
  const std::vector<double> seconds = take_turns(calls, std::max(1, static_cast<int>(1e8 / work)), rounds);
  for (size_t i = 0; i < calls.size(); i += 2) {
    const Variant& v = all[i / 4];
    const bool weights = i / 2 % 2 == 1;
    std::printf("%-10s %-8s %-17s %11.3f %11.3f %11.2f %11.2f\n", v.name, weights ? "yes" : "no", weights ? "unfused" : v.steps,
                seconds[i] * 1e3, seconds[i + 1] * 1e3, peak_mib(calls[i]), peak_mib(calls[i + 1]));
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
    ONESTEP_CHECK(ConfigError, rounds >= 1, "attention: rounds must be a positive number: ", argc > 1 ? argv[1] : "");
    kernels::set_num_threads(argc > 2 ? std::atoi(argv[2]) : kernels::num_threads());
    std::printf("%s, onestep with %s, %d threads, median of %d rounds\n", onestep::processor_name().c_str(),
                kernels::name(kernels::active_isa()), kernels::num_threads(), rounds);
    for (const Size& size : kSizes) print_table(size, rounds);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
