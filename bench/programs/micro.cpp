// Single ops and kernels by Google Benchmark (Debian: libbenchmark-dev): `micro --benchmark_filter=gelu`. GFLOP/s, GB/s and
// items a second are those of the wall clock.
#include <benchmark/benchmark.h>

#include "autograd/kernels/kernels.h"
#include "autograd/ops.h"

namespace {

using namespace onestep;

void wall_clock(benchmark::internal::Benchmark* b) { b->UseRealTime(); }

/// The op on four numbers: what a framework spends besides the arithmetic.
void add_recorded(benchmark::State& state) {
  const Tensor x = ones({4}).requires_grad_();
  for (auto _ : state) benchmark::DoNotOptimize(x + x);
}
BENCHMARK(add_recorded)->Apply(wall_clock);

void add_without_graph(benchmark::State& state) {
  const Tensor x = ones({4});
  for (auto _ : state) benchmark::DoNotOptimize(x + x);
}
BENCHMARK(add_without_graph)->Apply(wall_clock);

/// The backward pass of a chain y = y b + a of so many ops, without the forward pass and the end of the graph.
void backward_of_chain(benchmark::State& state) {
  const Tensor a = full({}, 1.001).requires_grad_(), b = full({}, 0.999).requires_grad_();
  for (auto _ : state) {
    state.PauseTiming();
    Tensor y = a;
    for (int64_t i = 0; i < state.range(0) / 2; ++i) y = y * b + a;
    state.ResumeTiming();
    y.backward();
    state.PauseTiming();
    y = Tensor();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(backward_of_chain)->Arg(100)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Apply(wall_clock);

/// An op on [1024, 1024] floats, which is read and written once.
template <Tensor (*OP)(const Tensor&)>
void on_a_million(benchmark::State& state) {
  Generator generator(0);
  const Tensor x = randn({1024, 1024}, generator);
  for (auto _ : state) benchmark::DoNotOptimize(OP(x));
  state.SetBytesProcessed(state.iterations() * 8 * x.numel());
}
Tensor exp_of(const Tensor& x) { return exp(x); }
Tensor tanh_of(const Tensor& x) { return tanh(x); }
Tensor gelu_of(const Tensor& x) { return gelu(x); }
Tensor softmax_of(const Tensor& x) { return softmax(x, -1); }
Tensor sum_of(const Tensor& x) { return sum(x); }
BENCHMARK(on_a_million<exp_of>)->Name("exp")->Apply(wall_clock);
BENCHMARK(on_a_million<tanh_of>)->Name("tanh")->Apply(wall_clock);
BENCHMARK(on_a_million<gelu_of>)->Name("gelu")->Apply(wall_clock);
BENCHMARK(on_a_million<softmax_of>)->Name("softmax")->Apply(wall_clock);
BENCHMARK(on_a_million<sum_of>)->Name("sum")->Apply(wall_clock);

/// [m, k] times the transpose of [n, k].
void gemm(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  Generator generator(0);
  const Tensor a = randn({m, k}, generator), b = randn({n, k}, generator);
  Tensor c = empty({m, n});
  float* const to = c.mutable_data<float>();
  for (auto _ : state) kernels::gemm(false, true, m, n, k, a.data<float>(), k, b.data<float>(), k, to, n, /*accumulate=*/false);
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(m * n * k),
                                                benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}
BENCHMARK(gemm)->Args({1, 384, 384})->Args({64, 64, 64})->Args({256, 256, 256})->Args({1024, 1024, 1024})->Apply(wall_clock);

}  // namespace

BENCHMARK_MAIN();
