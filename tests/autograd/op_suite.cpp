#include "tests/autograd/op_suite.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "autograd/grad.h"
#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "tests/autograd/kernels/kernel_testing.h"
#include "tests/autograd/layouts.h"

namespace onestep::testing {
namespace {

template <class... P>
std::string text(const P&... parts) {
  std::ostringstream out;
  out.precision(17);
  (out << ... << parts);
  return out.str();
}

/// A gradient of the result with few digits, exact in float32.
Tensor upstream(const Tensor& value) {
  std::vector<double> grad(static_cast<size_t>(value.numel()));
  for (size_t i = 0; i < grad.size(); ++i) grad[i] = (static_cast<double>((i * 37 + 11) % 127) - 63) / 64;
  return from_values(grad, value.shape()).to(value.dtype());
}

/// backward() copies the gradient it is given into rows; here the rule of y's op gets `grad` itself.
void backward_with(const Tensor& y, const Tensor& grad) {
  const Tensor* const given = &grad;
  const uint32_t version = grad.version();
  record("given", y.detach(), {y}, {}, [given](const Backward&) -> Grads { return {*given}; }).backward(grad);
  ONESTEP_CHECK(Error, grad.version() == version, "its rule writes to the gradient that it is given");
}

bool same_bits(const Tensor& a, const Tensor& b, int64_t& place) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return dispatch(compute_type(a.dtype()), [&]<class T>() {
    const std::vector<T> x = a.to_vector<T>(), y = b.to_vector<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      place = static_cast<int64_t>(i);
      if constexpr (std::is_same_v<T, float>) {
        if (std::bit_cast<uint32_t>(x[i]) != std::bit_cast<uint32_t>(y[i]) && !(x[i] != x[i] && y[i] != y[i])) return false;
      } else if constexpr (std::is_same_v<T, double>) {
        if (std::bit_cast<uint64_t>(x[i]) != std::bit_cast<uint64_t>(y[i]) && !(x[i] != x[i] && y[i] != y[i])) return false;
      } else {
        if (x[i] != y[i]) return false;
      }
    }
    return true;
  });
}

std::string bit_difference(const std::string& what, const Tensor& got, const Tensor& want) {
  if (got.defined() != want.defined()) return text(what, got.defined() ? " is there" : " is missing");
  int64_t place = 0;
  if (!got.defined() || same_bits(got, want, place)) return {};
  if (got.shape() != want.shape()) return text(what, " has shape ", got.shape(), ", not ", want.shape());
  if (got.dtype() != want.dtype()) return text(what, " is ", got.dtype(), ", not ", want.dtype());
  const auto i = static_cast<size_t>(place);
  return text(what, ", element ", place, ": ", got.to_vector<double>()[i], ", not ", want.to_vector<double>()[i]);
}

Outcome run(const OpSample& sample, DType dtype, bool requires_grad) {
  return evaluate(sample, make_inputs(sample, draw_values(sample), dtype, requires_grad));
}

// ---- values

/// True if the inputs decide between float32 and float64.
bool has_floating_input(const OpSample& sample) {
  return std::any_of(sample.inputs.begin(), sample.inputs.end(), [](const InputSpec& spec) { return is_floating(spec.dtype); });
}

std::string check_reference(const OpSample& sample) {
  const std::vector<Values> values = draw_values(sample);
  const Tensor got = sample.forward(make_inputs(sample, values, DType::float64));
  if (got.dtype() == DType::float32 && has_floating_input(sample)) return "float64 inputs give a float32 result";
  const Values want = sample.reference(values);
  const double float32_unit = std::numeric_limits<float>::epsilon();  // of the floats that a function makes of integers
  return difference(got, from_values(want.data, want.shape), got.dtype() == DType::float32 ? float32_unit : 1e-12, 1e-13);
}

std::string check_float32_value(const OpSample& sample) {
  if (!has_floating_input(sample)) return {};
  const Tensor got = run(sample, DType::float32, false).value, want = run(sample, DType::float64, false).value;
  if (got.dtype() == DType::float64) return "float32 inputs give a float64 result";
  return difference(got, want, sample.tolerance32, 1e-6);
}

std::string check_no_grad(const OpSample& sample) {
  const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), DType::float32, true);
  const Tensor want = sample.forward(inputs);
  const int64_t nodes = Node::alive();
  const NoGradGuard no_grad;
  const Tensor got = sample.forward(inputs);
  const bool is_input =  // an identity hands back the tensor that it was given, as in PyTorch
      std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) { return &input.impl() == &got.impl(); });
  if ((got.requires_grad() && !is_input) || Node::alive() != nodes) return "records a graph under NoGradGuard";
  return bit_difference("the result under NoGradGuard", got, want);
}

// ---- narrow dtypes

/// The inputs of one dtype as another.
std::vector<Tensor> as_dtype(std::vector<Tensor> inputs, DType from, DType to) {
  for (Tensor& input : inputs) {
    if (input.dtype() != from) continue;
    const bool requires_grad = input.requires_grad();
    input = input.detach().to(to);
    if (requires_grad) input.requires_grad_();
  }
  return inputs;
}

/// An op of halves computes in float32 and rounds once; its gradients are of the inputs' dtype and near those in float32.
std::string check_halves(const OpSample& sample) {
  if (!has_floating_input(sample)) return {};
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    const std::vector<Tensor> narrow = make_inputs(sample, draw_values(sample), dtype, sample.differentiable);
    const Outcome got = evaluate(sample, narrow), want = evaluate(sample, as_dtype(narrow, dtype, DType::float32));
    if (got.value.dtype() != (want.value.dtype() == DType::float32 ? dtype : want.value.dtype()))
      return text(dtype, " inputs give a ", got.value.dtype(), " result");
    const double unit = dtype == DType::float16 ? 0x1p-11 : 0x1p-8;  // half the distance of neighbours, relatively
    std::string wrong = sample.rounds_once ? bit_difference("the result", got.value, want.value.to(got.value.dtype()))
                                           : difference(got.value, want.value, 8 * unit, 8 * unit);
    for (size_t i = 0; i < narrow.size() && wrong.empty(); ++i) {
      if (!want.grads[i].defined()) continue;
      if (!got.grads[i].defined()) return text("no ", dtype, " gradient of input ", i);
      const double largest = want.grads[i].numel() == 0 ? 0 : max(abs(want.grads[i])).item();
      wrong = difference(got.grads[i], want.grads[i], 32 * unit, 32 * unit * largest);
      if (!wrong.empty()) wrong = text("the gradient of input ", i, ": ", wrong);
    }
    if (!wrong.empty()) return text(dtype, ": ", wrong);
  }
  return {};
}

/// Integers and indices of int32 give what those of int64 give.
std::string check_int32(const OpSample& sample) {
  const std::vector<Tensor> wide = make_inputs(sample, draw_values(sample), DType::float32);
  const std::vector<Tensor> narrow = as_dtype(wide, DType::int64, DType::int32);
  const bool has_integers =
      std::any_of(narrow.begin(), narrow.end(), [](const Tensor& x) { return x.dtype() == DType::int32; });
  if (!has_integers || !sample.takes_int32) return {};
  const Tensor got = sample.forward(narrow), want = sample.forward(wide);
  if (got.dtype() != want.dtype() && got.dtype() != DType::int32) return text("int32 inputs give a ", got.dtype(), " result");
  return bit_difference("the result of int32 inputs", got.to(want.dtype()), want);
}

/// Neither the op nor its rule may write to its inputs, and nothing may stay behind.
std::string check_inputs_kept(const OpSample& sample) {
  const int64_t nodes = Node::alive();
  {
    const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), DType::float32, true);
    std::vector<uint32_t> versions;
    for (const Tensor& input : inputs) versions.push_back(input.version());
    evaluate(sample, inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].version() != versions[i]) return text("writes to input ", i);
  }
  return Node::alive() == nodes ? "" : text("leaves ", Node::alive() - nodes, " graph nodes behind");
}

// ---- gradients

std::string check_gradients(const OpSample& sample) { return sample.differentiable ? gradcheck(sample).message : ""; }

std::string check_float32_gradients(const OpSample& sample) {
  if (!sample.differentiable) return {};
  const Outcome got = run(sample, DType::float32, true), want = run(sample, DType::float64, true);
  for (size_t i = 0; i < want.grads.size(); ++i) {
    if (!want.grads[i].defined()) continue;
    if (!got.grads[i].defined()) return text("no float32 gradient of input ", i);
    const std::string wrong = difference(got.grads[i], want.grads[i], sample.tolerance32, 1e-6);
    if (!wrong.empty()) return text("float32 gradient of input ", i, ": ", wrong);
  }
  return {};
}

// ---- derivatives of gradients

/// The gradients that a pass with create_graph gives: by formulas in ops instead of kernels.
std::string check_recorded(const OpSample& sample, DType dtype, double rtol, double atol) {
  const Outcome want = run(sample, dtype, true);
  const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), dtype, true);
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs)
    if (input.requires_grad()) leaves.push_back(input);
  const Tensor y = sample.forward(inputs);
  if (!y.requires_grad()) return {};
  const std::vector<Tensor> grads = autograd::grad({y}, leaves, {upstream(y)}, {.create_graph = true, .allow_unused = true});
  for (size_t i = 0, k = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const Tensor& got = grads[k++];
    if (got.defined() != want.grads[i].defined())
      return text("a recorded pass gives ", got.defined() ? "a" : "no", " gradient ", i);
    const std::string wrong = got.defined() ? difference(got, want.grads[i], rtol, atol) : "";
    if (!wrong.empty()) return text("the ", dtype, " gradient of input ", i, " in a recorded pass: ", wrong);
  }
  return {};
}

std::string check_second_derivatives(const OpSample& sample) {
  if (!sample.differentiable) return {};
  std::string wrong = check_recorded(sample, DType::float64, 1e-11, 1e-12);
  if (wrong.empty()) wrong = check_recorded(sample, DType::float32, 2 * sample.tolerance32, 2e-6);
  if (!wrong.empty() || !sample.twice_differentiable) return wrong;
  return gradgradcheck(sample, {.full_jacobian = 0, .directions = 2}).message;
}

std::vector<size_t> floating_inputs(const OpSample& sample) {
  std::vector<size_t> places;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    if (is_floating(sample.inputs[i].dtype)) places.push_back(i);
  return places;
}

/// The gradient of an input is the same whether or not the others need one.
std::string check_alone(const OpSample& sample) {
  if (!sample.differentiable) return {};
  const Outcome together = run(sample, DType::float32, true);
  for (size_t i : floating_inputs(sample)) {
    std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), DType::float32);
    inputs[i].requires_grad_();
    const Outcome alone = evaluate(sample, inputs);
    std::string wrong = bit_difference("the result", alone.value, together.value);
    if (wrong.empty()) wrong = bit_difference(text("the gradient of input ", i), alone.grads[i], together.grads[i]);
    if (!wrong.empty()) return text(wrong, " when only input ", i, " requires grad");
  }
  return {};
}

/// One tensor given twice gets the sum of both gradients.
std::string check_repeated(const OpSample& sample) {
  if (!sample.differentiable) return {};
  const std::vector<size_t> places = floating_inputs(sample);
  for (size_t i : places) {
    for (size_t j : places) {
      if (i >= j || sample.inputs[i].shape != sample.inputs[j].shape) continue;
      std::vector<Tensor> apart = make_inputs(sample, draw_values(sample), DType::float64, true);
      apart[j] = apart[i].detach().clone().requires_grad_();
      const Outcome twice = evaluate(sample, apart);
      std::vector<Tensor> shared = apart;
      shared[i].zero_grad();
      shared[j] = shared[i];
      const Outcome once = evaluate(sample, shared);
      std::string wrong = difference(once.value, twice.value, 0, 0);
      for (size_t k : {i, j})
        if (!twice.grads[k].defined()) return text("no gradient of input ", k);
      if (wrong.empty()) wrong = difference(once.grads[i], add(twice.grads[i], twice.grads[j]), 1e-12, 1e-13);
      if (!wrong.empty()) return text("one tensor as inputs ", i, " and ", j, ": ", wrong);
    }
  }
  return {};
}

/// No gradient shares memory with another one, with an input or with the result.
std::string check_separate(const OpSample& sample) {
  const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), DType::float32, true);
  const Outcome outcome = evaluate(sample, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& grad = outcome.grads[i];
    if (!grad.defined()) continue;
    if (grad.shares_storage(outcome.value)) return text("the gradient of input ", i, " shares memory with the result");
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (grad.shares_storage(inputs[j])) return text("the gradient of input ", i, " shares memory with input ", j);
      if (j > i && outcome.grads[j].defined() && grad.shares_storage(outcome.grads[j]))
        return text("the gradients of inputs ", i, " and ", j, " share memory");
    }
  }
  return {};
}

// ---- the same bits

std::string check_layout(const OpSample& sample, const Layout& layout, DType dtype, size_t first, size_t last) {
  std::vector<Tensor> rows = make_inputs(sample, draw_values(sample), dtype), strided = rows;
  for (size_t i = first; i < last; ++i) {
    strided[i] = layout.apply(rows[i]);
    rows[i] = strided[i].contiguous().clone();
  }
  for (size_t i = 0; i < rows.size() && sample.differentiable; ++i) {
    if (!rows[i].is_floating()) continue;
    rows[i].requires_grad_();
    strided[i] = strided[i].detach().requires_grad_();
  }
  const std::string wrong = bit_difference(evaluate(sample, strided), evaluate(sample, rows));
  return wrong.empty() ? "" : text(layout.name, " ", dtype, " inputs ", first, " to ", last - 1, ": ", wrong);
}

std::string check_layouts(const OpSample& sample) {
  if (!sample.any_layout) return {};
  const size_t n = sample.inputs.size();
  for (const Layout& layout : layouts()) {
    for (DType dtype : {DType::float32, DType::float64}) {
      std::string wrong = check_layout(sample, layout, dtype, 0, n);
      for (size_t i = 0; i < n && n > 1 && wrong.empty(); ++i) wrong = check_layout(sample, layout, dtype, i, i + 1);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

/// A rule sees the strides of what follows the op: a sum hands it an expanded gradient.
std::string check_upstream_layouts(const OpSample& sample) {
  if (!sample.differentiable) return {};
  for (const Layout& layout : layouts()) {
    for (DType dtype : {DType::float32, DType::float64}) {
      const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), dtype, true);
      const Outcome strided = evaluate(sample, inputs, layout.apply);
      for (Tensor input : inputs) input.zero_grad();
      const Outcome rows = evaluate(sample, inputs, [&](const Tensor& x) { return layout.apply(x).contiguous().clone(); });
      const std::string wrong = bit_difference(strided, rows);
      if (!wrong.empty()) return text("a ", layout.name, " ", dtype, " upstream gradient: ", wrong);
    }
  }
  return {};
}

std::string check_machines(const OpSample& sample) {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);  // small tensors are split, too
  for (DType dtype : {DType::float32, DType::float64}) {
    kernels::set_isa(kernels::Isa::generic);
    kernels::set_num_threads(1);
    const Outcome want = run(sample, dtype, sample.differentiable);
    for (kernels::Isa isa : kernels::kAllIsas) {
      if (!kernels::isa_supported(isa)) continue;
      kernels::set_isa(isa);
      for (int threads = 1; threads <= 4; ++threads) {
        kernels::set_num_threads(threads);
        const std::string wrong = bit_difference(run(sample, dtype, sample.differentiable), want);
        if (!wrong.empty()) return text(dtype, " on ", threads, " threads with ", kernels::name(isa), ": ", wrong);
      }
    }
  }
  return {};
}

}  // namespace

Outcome evaluate(const OpSample& sample, const std::vector<Tensor>& inputs,
                 const std::function<Tensor(const Tensor&)>& relaid) {
  Outcome outcome{sample.forward(inputs), std::vector<Tensor>(inputs.size())};
  if (!outcome.value.requires_grad()) return outcome;
  const Tensor grad = upstream(outcome.value);
  backward_with(outcome.value, relaid ? relaid(grad) : grad);
  for (size_t i = 0; i < inputs.size(); ++i) outcome.grads[i] = inputs[i].grad();
  return outcome;
}

std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.shape() != want.shape()) return text("shape ", got.shape(), ", not ", want.shape());
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    const bool near = a[i] == b[i] || std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]);
    if (!near && !(std::isnan(a[i]) && std::isnan(b[i]))) return text("element ", i, ": ", a[i], ", not ", b[i]);
  }
  return {};
}

std::string bit_difference(const Outcome& got, const Outcome& want) {
  std::string wrong = bit_difference("the result", got.value, want.value);
  for (size_t i = 0; i < want.grads.size() && wrong.empty(); ++i)
    wrong = bit_difference(text("the gradient of input ", i), got.grads[i], want.grads[i]);
  return wrong;
}

const std::vector<SampleCheck>& sample_checks() {
  static const std::vector<SampleCheck> checks{
      {"float64 against the reference", check_reference},
      {"float32 against float64", check_float32_value},
      {"NoGrad", check_no_grad},
      {"halves", check_halves},
      {"int32", check_int32},
      {"inputs kept", check_inputs_kept},
      {"gradcheck", check_gradients},
      {"float32 gradients", check_float32_gradients},
      {"second derivatives", check_second_derivatives},
      {"each input alone", check_alone},
      {"one tensor twice", check_repeated},
      {"gradients apart", check_separate},
      {"layouts", check_layouts},
      {"upstream layouts", check_upstream_layouts},
      {"threads and instruction sets", check_machines},
  };
  return checks;
}

std::vector<std::string> failures(const OpSample& sample) {
  std::vector<std::string> failed;
  for (const SampleCheck& check : sample_checks()) {
    std::string wrong;
    try {
      wrong = check.run(sample);
    } catch (const std::exception& error) {
      wrong = text("throws ", error.what());
    }
    if (!wrong.empty()) failed.push_back(text(check.name, ": ", wrong));
  }
  return failed;
}

}  // namespace onestep::testing
