// All steps of an LSTM as one op: its weight is packed once, and each row of gates is read and written while it is in the L1
// cache.
#include <algorithm>
#include <vector>

#include "autograd/creation.h"
#include "autograd/kernels/kernels.h"
#include "autograd/operators.h"
#include "autograd/ops/common.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/vector_loop.h"

namespace onestep {
namespace {

struct LstmSizes {
  int64_t steps, batch, hidden;
  bool reverse;

  int64_t state() const { return batch * hidden; }
  int64_t token(int64_t step) const { return reverse ? steps - 1 - step : step; }
  /// Rough nanoseconds that a row of the batch takes.
  double cost() const { return 0.2 * static_cast<double>(steps * hidden * (hidden + 16)); }
  /// Rows of the batch do not depend on each other, so that a thread takes its rows through all steps, with a packed weight.
  /// But the threads share each product where there are few rows, or fewer steps than packing is worth.
  bool splits_rows() const { return steps >= 8 && (kernels::num_threads() == 1 || batch / 4 >= kernels::num_threads()); }
  template <class F>
  void over_rows(const F& f) const {
    if (splits_rows())
      kernels::parallel_for(batch, cost(), f);
    else
      f(int64_t{0}, batch);
  }
};

/// Where the states and gates of each step are; T is constant in the backward pass.
template <class T>
struct Places {
  LstmSizes sizes;
  const T *first_h, *first_c;
  T* states;  // [steps + 1, batch, hidden]: h of every token, then the last c
  T* gates;   // [steps, batch, 4 hidden]: i, f, g, o; of one step where nothing is recorded
  T* cells;   // [steps, batch, hidden]: c after every step but the last; null where nothing is recorded

  const T* h_before(int64_t step) const { return step == 0 ? first_h : states + sizes.token(step - 1) * sizes.state(); }
  const T* c_before(int64_t step) const { return step == 0 ? first_c : c_after(step - 1); }
  T* h_after(int64_t step) const { return states + sizes.token(step) * sizes.state(); }
  T* c_after(int64_t step) const {
    return cells && step + 1 < sizes.steps ? cells + step * sizes.state() : states + sizes.steps * sizes.state();
  }
  T* gates_of(int64_t step) const { return gates + (cells ? sizes.token(step) * 4 * sizes.state() : 0); }
};

/// Products of rows [m, k] and the weight, or its transpose: op(weight) is [k, n]. The bits are the same packed or not.
template <class T>
class Product {
 public:
  Product(const LstmSizes& sizes, bool transposed, const Tensor& weight)
      : transposed_(transposed), ld_(sizes.hidden), weight_(weight.data<T>()) {
    n_ = transposed ? 4 * ld_ : ld_;
    k_ = transposed ? ld_ : 4 * ld_;
    if (!sizes.splits_rows()) return;
    memory_ = empty(kernels::packed_size<T>(n_, k_), weight.dtype());
    kernels::pack<T>(transposed, n_, k_, weight_, ld_, memory_.template mutable_data<T>());
  }
  void operator()(int64_t m, const T* a, T* c) const {
    if (memory_.defined())
      kernels::gemm<T>(m, n_, k_, a, k_, {memory_.template data<T>(), n_, k_}, c, n_);
    else
      kernels::gemm<T>(false, transposed_, m, n_, k_, a, k_, weight_, ld_, c, n_, false);
  }

 private:
  bool transposed_;
  int64_t n_, k_, ld_;
  const T* weight_;
  Tensor memory_;
};

/// The gates from their sums g, c from the c before, and h.
template <class T>
void next_state(int64_t n, T* g, const T* c_before, T* c, T* h) {
  const kernels::Table<T>& k = kernels::table<T>();
  k.sigmoid(g, g, 2 * n);
  k.tanh(g + 2 * n, g + 2 * n, n);
  k.sigmoid(g + 3 * n, g + 3 * n, n);
  k.mul(g + n, 1, c_before, 1, c, n);
  k.mul(g, 1, g + 2 * n, 1, h, n);
  k.add(c, 1, h, 1, c, n);
  k.tanh(c, h, n);
  k.mul(g + 3 * n, 1, h, 1, h, n);
}

template <class T>
void run_steps(const Places<T>& x, const T* input_gates, const Product<T>& product, const T* bias) {
  const int64_t n = x.sizes.hidden;
  x.sizes.over_rows([&, input_gates, bias, n](int64_t begin, int64_t end) {
    for (int64_t step = 0; step < x.sizes.steps; ++step) {
      T* const gates = x.gates_of(step);
      product(end - begin, x.h_before(step) + begin * n, gates + begin * 4 * n);
      const T* const of_input = input_gates + x.sizes.token(step) * 4 * x.sizes.state();
      for (int64_t row = begin; row < end; ++row) {
        T* const g = gates + row * 4 * n;
        if (bias) kernels::table<T>().add(g, 1, bias, 1, g, 4 * n);
        kernels::table<T>().add(of_input + row * 4 * n, 1, g, 1, g, 4 * n);
        next_state(n, g, x.c_before(step) + row * n, x.c_after(step) + row * n, x.h_after(step) + row * n);
      }
    }
  });
}

/// From dy, the gradient of this step's h as a result, and dh, that from the step after: those of the gates' sums, which may be
/// written over the gates. dc comes in as the gradient of this step's c, and goes out as that of the c before.
template <class T>
ONESTEP_EACH_ISA void step_grads(int64_t n, const T* gates, const T* c_before, const T* tanh_c, const T* dy, const T* dh, T* dc,
                                 T* dgates) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T i = gates[j], f = gates[n + j], g = gates[2 * n + j], o = gates[3 * n + j], t = tanh_c[j], d = dy[j] + dh[j];
    const T cell = dc[j] + d * o * (1 - t * t);
    dgates[j] = cell * g * i * (1 - i);
    dgates[n + j] = cell * c_before[j] * f * (1 - f);
    dgates[2 * n + j] = cell * i * (1 - g * g);
    dgates[3 * n + j] = d * t * o * (1 - o);
    dc[j] = cell * f;
  }
}

/// From `dy` of the states the gradients of all gates' sums and, in dc and where `needs_h` in dh, of the first c and h.
template <class T>
void run_backwards(const Places<const T>& x, const T* dy, const Product<T>& product, T* dgates, bool needs_h, T* dh, T* dc) {
  const int64_t n = x.sizes.hidden, state = x.sizes.state();
  Tensor tanhs = empty(x.sizes.batch * n, dtype_of<T>());
  T* const tanh_c = tanhs.mutable_data<T>();
  std::fill_n(dh, state, T(0));
  std::copy_n(dy + x.sizes.steps * state, state, dc);
  x.sizes.over_rows([&, dy, dgates, needs_h, dh, dc, n, tanh_c](int64_t begin, int64_t end) {
    for (int64_t step = x.sizes.steps - 1; step >= 0; --step) {
      const int64_t token = x.sizes.token(step);
      for (int64_t row = begin; row < end; ++row) {
        kernels::table<T>().tanh(x.c_after(step) + row * n, tanh_c + row * n, n);
        step_grads(n, x.gates_of(step) + row * 4 * n, x.c_before(step) + row * n, tanh_c + row * n,
                   dy + token * state + row * n, dh + row * n, dc + row * n, dgates + (token * state + row * n) * 4);
      }
      if (step > 0 || needs_h) product(end - begin, dgates + (token * state + begin * n) * 4, dh + begin * n);
    }
  });
}

/// dW = sum over the steps of dgates^T h, h being that before the step.
template <class T>
void weight_grad(const Places<const T>& x, const T* dgates, T* dw) {
  const LstmSizes& s = x.sizes;
  const auto add = [&](int64_t token, int64_t tokens, const T* h, bool accumulate) {
    kernels::gemm<T>(true, false, 4 * s.hidden, s.hidden, tokens * s.batch, dgates + token * 4 * s.state(), 4 * s.hidden, h,
                     s.hidden, dw, s.hidden, accumulate);
  };
  add(s.token(0), 1, x.first_h, false);
  if (s.steps > 1) add(s.reverse ? 0 : 1, s.steps - 1, x.states + (s.reverse ? s.state() : 0), true);
}

// What the op saves; the input for gradients of gradients alone.
enum Saved : size_t { kInput, kH, kC, kWeight, kBias, kStates, kGates, kCells };

Grads grads(const Backward& b, const LstmSizes& sizes) {
  const Tensor dy = ops::contiguous_values(b.grad()), h = ops::contiguous_values(b.saved(kH)),
               c = ops::contiguous_values(b.saved(kC)), w = ops::contiguous_values(b.saved(kWeight)), &gates = b.saved(kGates);
  Tensor dgates = b.reused(kGates), dh = empty(h.shape(), h.dtype()), dc = empty(h.shape(), h.dtype());
  Tensor dw = b.needs(kWeight) ? empty(w.shape(), w.dtype()) : Tensor(),
         dbias = b.needs(kBias) ? empty(4 * sizes.hidden, w.dtype()) : Tensor();
  dispatch_floating(dy.dtype(), "lstm", [&]<class T>() {
    T* const d = dgates.mutable_data<T>();
    const Places<const T> x = {
        sizes, h.data<T>(), c.data<T>(), b.saved(kStates).data<T>(), gates.data<T>(), b.saved(kCells).data<T>()};
    run_backwards<T>(x, dy.data<T>(), Product<T>(sizes, false, w), d, b.needs(kH), dh.mutable_data<T>(), dc.mutable_data<T>());
    if (dw.defined()) weight_grad<T>(x, d, dw.mutable_data<T>());
    if (dbias.defined())
      kernels::sum_rows(d, dbias.mutable_data<T>(), sizes.steps * sizes.batch, 4 * sizes.hidden, 4 * sizes.hidden);
  });
  return {dgates, b.needs(kH) ? dh : Tensor(), dc, dw, dbias};
}

/// The same in ops that are recorded, step by step; every h is an element of the result.
Grads recorded_grads(const Backward& b, const LstmSizes& sizes) {
  const auto in_time = [&](const Tensor& x) { return sizes.reverse ? flip(x, {0}) : x; };
  const auto tokens = [&](const Tensor& x) { return in_time(narrow(x, 0, 0, sizes.steps)); };
  const Tensor &w = b.saved(kWeight), dy = tokens(b.grad()), h = tokens(b.saved(kStates));
  const Tensor before = cat({unsqueeze(b.saved(kH), 0), narrow(h, 0, 0, sizes.steps - 1)}, 0);
  const Tensor sums = in_time(b.saved(kInput)) + linear(before, w, b.saved(kBias));
  const auto gate = [&](int64_t i) { return narrow(sums, -1, i * sizes.hidden, sizes.hidden); };
  const Tensor in = sigmoid(gate(0)), forget = sigmoid(gate(1)), fresh = tanh(gate(2)), out = sigmoid(gate(3));
  std::vector<Tensor> cells = {b.saved(kC)}, dsums(static_cast<size_t>(sizes.steps));
  for (int64_t s = 0; s < sizes.steps; ++s) cells.push_back(forget[s] * cells.back() + in[s] * fresh[s]);
  Tensor dh = zeros(cells[0].shape(), cells[0].dtype()), dc = b.grad()[sizes.steps];
  for (int64_t s = sizes.steps - 1; s >= 0; --s) {
    const auto at = static_cast<size_t>(s);
    const Tensor i = in[s], f = forget[s], g = fresh[s], o = out[s], tanh_c = tanh(cells[at + 1]), d = dy[s] + dh;
    const Tensor cell = dc + d * o * (1 - tanh_c * tanh_c);
    dsums[at] =
        cat({cell * g * i * (1 - i), cell * cells[at] * f * (1 - f), cell * i * (1 - g * g), d * tanh_c * o * (1 - o)}, -1);
    dh = matmul(dsums[at], w);
    dc = cell * f;
  }
  const Tensor all = stack(dsums);
  return {in_time(all), dh, dc, b.needs(kWeight) ? matmul(t(flatten(all, 0, 1)), flatten(before, 0, 1)) : Tensor(),
          b.needs(kBias) ? sum(all, {0, 1}) : Tensor()};
}

void check(const Tensor& input_gates, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias) {
  ops::check_floating("lstm", input_gates);
  for (const Tensor* x : {&h, &c, &weight, &bias})
    if (x->defined()) ops::check_same_dtype("lstm", input_gates, *x);
  ONESTEP_CHECK(ShapeError, input_gates.dim() == 3 && input_gates.size(0) > 0 && input_gates.size(2) % 4 == 0,
                "lstm: needs gates [T, B, 4 hidden] of at least one token: got ", input_gates.shape());
  const int64_t gates = input_gates.size(2);
  const Shape state = {input_gates.size(1), gates / 4}, matrix = {gates, gates / 4}, vector = {gates};
  ONESTEP_CHECK(ShapeError, h.shape() == state && c.shape() == state, "lstm: needs states ", state, ": got ", h.shape(),
                " and ", c.shape());
  ONESTEP_CHECK(ShapeError, weight.shape() == matrix, "lstm: needs a weight ", matrix, ": got ", weight.shape());
  ONESTEP_CHECK(ShapeError, !bias.defined() || bias.shape() == vector, "lstm: needs a bias ", vector, ": got ", bias.shape());
}

}  // namespace

Tensor lstm(const Tensor& input_gates, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias,
            bool reverse) {
  check(input_gates, h, c, weight, bias);
  if (is_narrow(h.dtype())) {
    const auto wide = [](const Tensor& x) { return ops::wide(x); };
    return to(lstm(wide(input_gates), wide(h), wide(c), wide(weight), wide(bias), reverse), h.dtype());
  }
  const LstmSizes sizes = {.steps = input_gates.size(0), .batch = h.size(0), .hidden = h.size(1), .reverse = reverse};
  const bool recorded = detail::should_record({input_gates, h, c, weight, bias});
  const Tensor in = ops::contiguous_values(input_gates), first_h = ops::contiguous_values(h),
               first_c = ops::contiguous_values(c), w = ops::contiguous_values(weight), more = ops::rows_or_undefined(bias);
  Tensor states = empty({sizes.steps + 1, sizes.batch, sizes.hidden}, h.dtype());
  Tensor gates = empty({recorded ? sizes.steps : 1, sizes.batch, 4 * sizes.hidden}, h.dtype());
  Tensor cells = recorded ? empty({sizes.steps, sizes.batch, sizes.hidden}, h.dtype()) : Tensor();
  dispatch_floating(h.dtype(), "lstm", [&]<class T>() {
    run_steps<T>({sizes, first_h.data<T>(), first_c.data<T>(), states.mutable_data<T>(), gates.mutable_data<T>(),
                  recorded ? cells.mutable_data<T>() : nullptr},
                 in.data<T>(), Product<T>(sizes, true, w), ops::data_or_null<T>(more));
  });
  return record("lstm", states, {input_gates, h, c, weight, bias}, {input_gates, h, c, weight, bias, states, gates, cells},
                [sizes](const Backward& b) { return b.recording() ? recorded_grads(b, sizes) : grads(b, sizes); });
}

}  // namespace onestep
