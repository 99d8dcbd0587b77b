#include "bench/workloads.h"

#include "attention/causal_self_attention.h"
#include "autograd/autocast.h"
#include "autograd/kernels/flops.h"
#include "autograd/memory.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/profiler.h"
#include "base/enum_names.h"
#include "base/format.h"
#include "base/machine.h"
#include "bench/header.h"
#include "nn/pack_weights.h"
#include "train/memory_need.h"
#include "train/models/generate.h"
#include "train/trainer.h"

namespace onestep::bench {
namespace {

using json = nlohmann::ordered_json;

Bf16Order order_of(const std::string& precision) { return precision == "bf16_amx" ? Bf16Order::amx : Bf16Order::avx512; }

json header(const std::string& bench, const GptShape& m) {
  json result = bench::header(bench);
  result.update({{"layers", m.layers}, {"heads", m.heads}, {"embd", m.embd}, {"ctx", m.ctx}, {"vocab", m.vocab}});
  result["bias"] = m.bias;
  return result;
}

train::Config gpt_config(const GptShape& m) {
  json config = {{"model",
                  {{"kind", "gpt"},
                   {"num_layers", m.layers},
                   {"num_heads", m.heads},
                   {"d_model", m.embd},
                   {"context_length", m.ctx},
                   {"dropout", 0},
                   {"bias", m.bias}}},
                 {"data", {{"kind", "tokens"}, {"vocab_size", m.vocab}}},
                 {"optimizer", {{"kind", "adamw"}, {"lr", 3e-4}, {"betas", {0.9, 0.95}}, {"weight_decay", 0.1}}}};
  Generator generator(0);
  const Tensor ids = randint(0, m.vocab, {64 * (m.ctx + 1)}, generator);
  config["data"]["tokens"] = std::vector<int64_t>(ids.data<int64_t>(), ids.data<int64_t>() + ids.numel());
  return train::parse_config(config.dump(), "bench");
}

/// Calls, milliseconds and GFLOP/s of every op in a step.
json profile_of(train::Trainer& trainer, int steps) {
  const Profiler profiler;
  for (int i = 0; i < steps; ++i) trainer.step();
  json ops = json::object();
  for (const auto& e : profiler.entries())
    ops[e.name] = {{"calls", e.calls / steps}, {"ms", 1e3 * e.seconds / steps}, {"gflops", 1e-9 * e.flops / e.seconds}};
  return ops;
}

/// The floating-point operations of products in one call.
double flops_of(const std::function<void()>& call) {
  kernels::count_flops(true);
  const double before = kernels::counted_flops();
  call();
  kernels::count_flops(false);
  return kernels::counted_flops() - before;
}

/// Throws ConfigError where `what` needs more memory than there is: the system would kill the program.
void check_fits(const std::string& what, double bytes) {
  const auto left = static_cast<double>(available_memory());
  ONESTEP_CHECK(ConfigError, bytes <= left, "bench ", what, " need ", grouped(bytes / (1 << 20)), " MiB, there are ",
                grouped(left / (1 << 20)), " MiB left");
}

Tensor random(const Shape& shape) {
  static Generator generator(1);
  return randn(shape, generator);
}

}  // namespace

json bench_step(const StepWork& work, double seconds) {
  train::Config config = gpt_config(work.model);
  config.train.precision = *value_named<train::Precision>(work.precision);
  config.model.activation = work.gelu == "tanh" ? train::Activation::gelu_tanh : train::Activation::gelu;
  config.optimizer.decay = train::Decay::matrices;
  config.train.batch_size = work.batch;
  config.model.lora.rank = work.lora;
  train::Trainer trainer(config);
  double loss = 0;
  const double first_ms = 1e3 * seconds_per_call([&] { loss = trainer.step().loss; }, 1), first = process_age();
  const int64_t before = memory::stats().system_allocations;
  const Timing t =
      time_calls([&] { trainer.step(); },
                 {.warmup = 3, .min_reps = std::min<int64_t>(work.steps, 3), .max_reps = work.steps, .seconds = seconds});
  json result = header("gpt_step", work.model);
  result.update({{"batch", work.batch},
                 {"gelu", work.gelu},
                 {"precision", work.precision},
                 {"lora", work.lora},
                 {"params", trainer.model().num_parameters()},
                 {"first_step_ms", first_ms}});
  result["tokens_per_s"] = static_cast<double>(work.batch * work.model.ctx) / t.median_ms * 1e3;
  result["loss0"] = loss;
  result["gflop"] = 1e-9 * flops_of([&] { trainer.step(); });
  result["system_allocations_after_first_step"] = memory::stats().system_allocations - before;
  if (work.profile) result["profile"] = profile_of(trainer, 5);
  return report(std::move(result), t, first);
}

json bench_attention(const AttentionWork& w, double seconds) {
  const Bf16OrderGuard order(order_of(w.precision));
  // x, q, k, v, context and result; with the backward pass also a gradient of each.
  check_fits("attention: the tensors of --B, --T and --C",
             (w.backward ? 12.0 : 6.0) * 4 * static_cast<double>(w.B) * static_cast<double>(w.T) * static_cast<double>(w.C));
  Generator generator(0);
  attention::CausalSelfAttention module(
      {.d_in = w.C, .d_out = w.C, .context_length = w.T, .num_heads = w.H, .qkv_bias = true, .out_bias = true}, generator);
  const Tensor x = random({w.B, w.T, w.C}).requires_grad_(w.backward), dy = random({w.B, w.T, w.C});
  std::vector<Tensor> leaves = module.parameters();
  leaves.push_back(x);
  const auto forward = [&] {
    const AutocastGuard autocast(w.precision != "float32");
    return module.forward(x);
  };
  const auto call = [&] {
    if (!w.backward) {
      const NoGradGuard no_grad;
      forward();
      return;
    }
    for (Tensor& leaf : leaves) leaf.zero_grad();
    const Tensor y = forward();
    y.backward(to(dy, y.dtype()));
  };
  call();
  const double first = process_age();
  json result = header("attention");
  result.update({{"mode", w.backward ? "fwdbwd" : "fwd"}, {"B", w.B}, {"T", w.T}, {"C", w.C}, {"H", w.H}});
  result["precision"] = w.precision;
  result["gflop"] = 1e-9 * flops_of(call);
  return report(std::move(result), time_calls(call, {.warmup = 1, .seconds = seconds}), first);
}

json bench_matmul(const MatmulWork& w, double seconds) {
  const Bf16OrderGuard order(order_of(w.precision));
  const auto batch = static_cast<double>(w.batch), m = static_cast<double>(w.m), n = static_cast<double>(w.n),
             k = static_cast<double>(w.k);
  check_fits("matmul: the matrices of --m, --n, --k and --batch", 4 * batch * (m * k + k * n + m * n));
  const DType dtype = w.precision == "float32" ? DType::float32 : DType::bfloat16;
  const auto matrix = [&](bool transposed, int64_t rows, int64_t cols) {
    Tensor x = to(random(transposed ? Shape{w.batch, cols, rows} : Shape{w.batch, rows, cols}), dtype);
    if (transposed) x = transpose(x, 1, 2);
    return w.batch == 1 ? squeeze(x, 0) : x;
  };
  const Tensor a = matrix(w.op[0] == 'T', w.m, w.k), b = matrix(w.op[1] == 'T', w.k, w.n);
  const auto call = [&] { matmul(a, b); };
  call();
  const double first = process_age();
  const Timing t = time_calls(call, {.warmup = 5, .seconds = seconds});
  json result = header("matmul");
  result.update({{"op", w.op}, {"m", w.m}, {"n", w.n}, {"k", w.k}, {"batch", w.batch}, {"precision", w.precision}});
  result["gflop"] = 2e-9 * batch * m * n * k;
  result["gflops"] = 2e-6 * batch * m * n * k / t.median_ms;
  return report(std::move(result), t, first);
}

json bench_conv(const ConvWork& w, double seconds) {
  const int64_t out = (w.size + 2 * w.padding - w.kernel) / w.stride + 1;
  const auto pixels = static_cast<double>(w.batch * w.size * w.size), results = static_cast<double>(w.batch * out * out);
  check_fits("conv: the images of --batch, --in, --out and --size",
             8 * (pixels * static_cast<double>(w.in) + results * static_cast<double>(w.out)));
  Tensor x = random({w.batch, w.in, w.size, w.size});
  if (!w.first) x.requires_grad_();
  Tensor weight = random({w.out, w.in, w.kernel, w.kernel}).requires_grad_(), bias = random({w.out}).requires_grad_();
  const auto forward = [&] { return conv2d(x, weight, bias, w.stride, w.padding); };
  const Tensor dy = ones(forward().shape());
  const auto call = [&] {
    if (!w.backward) {
      const NoGradGuard no_grad;
      forward();
      return;
    }
    for (Tensor* leaf : {&x, &weight, &bias}) leaf->zero_grad();
    forward().backward(dy);
  };
  call();
  const double first = process_age();
  const Timing t = time_calls(call, {.warmup = 5, .seconds = seconds});
  json result = header("conv");
  result.update({{"mode", w.backward ? "fwdbwd" : "fwd"},
                 {"batch", w.batch},
                 {"in", w.in},
                 {"out", w.out},
                 {"size", w.size},
                 {"kernel", w.kernel},
                 {"stride", w.stride},
                 {"padding", w.padding},
                 {"first", w.first ? 1 : 0}});
  const double products = !w.backward ? 1 : w.first ? 2 : 3;
  result["gflop"] = 2e-9 * products * results * static_cast<double>(w.out * w.in * w.kernel * w.kernel);
  return report(std::move(result), t, first);
}

json bench_generate(const GenerateWork& work, double seconds) {
  ONESTEP_CHECK(ConfigError, work.prompt + work.tokens <= work.model.ctx,
                "bench generate: --prompt and --tokens must fit into --ctx ", work.model.ctx, ": got ",
                work.prompt + work.tokens);
  const train::Config config = gpt_config(work.model);
  check_fits("generate: the parameters of --layers, --embd and --vocab",
             train::memory_need(config, work.model.vocab, 1).parameter_bytes);
  const double numbers = 2.0 * static_cast<double>(work.model.layers * work.model.embd) * static_cast<double>(work.model.ctx) +
                         static_cast<double>(work.model.vocab);
  check_fits("generate: the caches and logits of --batch", 4.0 * static_cast<double>(work.batch) * numbers);
  Generator generator(0);
  const auto model = train::make_language_model(config.model, work.model.vocab, generator);
  nn::pack_weights(*model, value_named<WeightFormat>(work.weights).value());
  const Tensor ids = randint(0, work.model.vocab, {work.batch, work.prompt}, generator);
  std::vector<train::Prompt> prompts;
  for (int64_t i = 0; i < work.batch; ++i)
    prompts.push_back({{ids.data<int64_t>() + i * work.prompt, static_cast<size_t>(work.prompt)}, &generator});
  const auto run = [&](int64_t tokens) {
    train::generate(*model, prompts, {.tokens = tokens, .sampling = {.temperature = 0}});
  };
  run(2);
  const double first = process_age();
  const Timing t = time_calls([&] { run(work.tokens); }, {.warmup = 1, .min_reps = 3, .seconds = seconds});
  json result = header("gpt_infer", work.model);
  result.update({{"prompt", work.prompt}, {"tokens", work.tokens}, {"batch", work.batch}, {"weights", work.weights}});
  result["tokens_per_s"] = static_cast<double>(work.batch * work.tokens) / t.median_ms * 1e3;
  result["parameter_bytes"] = nn::weight_bytes(*model);
  result["ms_per_token"] = t.median_ms / static_cast<double>(work.tokens);
  return report(std::move(result), t, first);
}

}  // namespace onestep::bench
