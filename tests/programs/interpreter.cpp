#include "tests/programs/interpreter.h"

#include <cmath>
#include <map>
#include <memory>
#include <sstream>

#include "autograd/grad.h"
#include "tests/goldens.h"
#include "tests/programs/call.h"

namespace onestep::programs {
namespace {

using nlohmann::json;

/// What a running program holds.
struct Machine {
  ~Machine() {
    end_guards();
    for (auto& [name, x] : tensors)  // a gradient in the graph holds its tensor, which holds it
      if (x.defined()) x.zero_grad();
  }
  void end_guards() {  // in reverse order
    while (!guards.empty()) guards.pop_back();
  }
  Tensors tensors;
  std::vector<std::shared_ptr<void>> guards;
};

/// ((7 i) mod 11 - 5) / 4: a gradient that tells the elements of a result apart.
Tensor weights(const Tensor& like) {
  std::vector<double> values(static_cast<size_t>(like.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<double>(7 * i % 11) - 5) / 4;
  return to(from_values(values, like.shape()), like.dtype());
}

/// The memory of a tensor of these sizes and strides whose elements, in row-major order, are `values`.
template <class T>
Tensor memory_of(const std::vector<T>& values, const Shape& shape, const Shape& strides) {
  int64_t extent = shape.numel() == 0 ? 0 : 1;
  for (int d = 0; extent > 0 && d < shape.rank(); ++d) extent += (shape[d] - 1) * strides[d];
  std::vector<T> memory(static_cast<size_t>(extent));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t place = 0, rest = static_cast<int64_t>(i);
    for (int d = shape.rank() - 1; d >= 0; rest /= shape[d--]) place += rest % shape[d] * strides[d];
    memory[static_cast<size_t>(place)] = values[i];
  }
  return from_values(memory, extent);
}

/// tensor(dtype, shape, values, requires_grad, strides): a new tensor.
Results make(Machine& /*machine*/, const Args& a) {
  const DType dtype = a.dtype(0, "dtype");
  const Shape shape = a.shape(1, "shape");
  const Shape strides = a.has(4, "strides") ? a.shape(4, "strides") : contiguous_strides(shape);
  const Tensor memory = is_floating(dtype) ? memory_of(a.values<double>(2, "values"), shape, strides)
                                           : memory_of(a.values<int64_t>(2, "values"), shape, strides);
  Tensor x(to(memory, dtype).impl().storage, dtype, shape, strides, 0);
  if (a.flag(3, "requires_grad")) x.requires_grad_();
  return x;
}

/// Undefined (with a warning in PyTorch) of a result that was not asked to retain it.
Tensor collected(const Tensor& x) {
  try {
    return x.grad();
  } catch (const GradError&) {
    return {};
  }
}

void forget_gradient(Tensor& x) try {
  if (x.defined()) x.zero_grad();
} catch (const GradError&) {  // of a view that has lost its place in the graph
}

Results backward(Machine& machine, const Args& a) {
  const Tensor x = a.x();
  const bool weighted = a.has(1, "gradient") && !a.is_tensor(1, "gradient");
  try {
    x.backward(weighted ? weights(x) : a.tensor(1, "gradient"), a.flag(2, "retain_graph"), a.flag(3, "create_graph"),
               a.tensors(4, "inputs"));
  } catch (const Error&) {  // which gradients arrived before is nobody's promise
    for (auto& [name, tensor] : machine.tensors) forget_gradient(tensor);
    throw;
  }
  return {};
}

/// grad_of(outputs, inputs, create_graph, retain_graph, allow_unused): torch.autograd.grad with weights() as gradients.
Results grad_of(Machine& /*machine*/, const Args& a) {
  const std::vector<Tensor> outputs = a.tensors(0, "outputs");
  std::vector<Tensor> gradients;
  for (const Tensor& y : outputs) gradients.push_back(weights(y));
  return autograd::grad(outputs, a.tensors(1, "inputs"), gradients,
                        {.retain_graph = a.flag(3, "retain_graph"),
                         .create_graph = a.flag(2, "create_graph"),
                         .allow_unused = a.flag(4, "allow_unused")});
}

/// register_hook(x, number): a hook that multiplies the gradient.
Results register_hook(Machine& /*machine*/, const Args& a) {
  Tensor x = a.x();
  x.register_hook([number = a.scalar(1, "number")](const Tensor& grad) { return mul(grad, number); });
  return {};
}

template <class Guard, class... A>
Results begin(Machine& machine, A... arguments) {
  machine.guards.push_back(std::make_shared<Guard>(arguments...));
  return {};
}

Results end(Machine& machine, const Args&) {
  if (!machine.guards.empty()) machine.guards.pop_back();
  return {};
}

using GraphCall = Results (*)(Machine&, const Args&);

const std::map<std::string, GraphCall>& graph_calls() {
  static const std::map<std::string, GraphCall> table = {
      {"tensor", make},
      {"backward", backward},
      {"no_grad", [](Machine& m, const Args&) { return begin<NoGradGuard>(m); }},
      {"enable_grad", [](Machine& m, const Args&) { return begin<EnableGradGuard>(m); }},
      {"set_grad_enabled", [](Machine& m, const Args& a) { return begin<GradGuard>(m, a.flag(0, "on")); }},
      {"end", end},
      {"grad_of", grad_of},
      {"register_hook", register_hook},
      {"detach", [](Machine&, const Args& a) -> Results { return a.x().detach(); }},
      {"requires_grad_", [](Machine&, const Args& a) -> Results { return a.x().requires_grad_(a.flag(1, "on", true)); }},
      {"retain_grad", [](Machine&, const Args& a) -> Results { return a.x().retain_grad(), Results(); }},
      {"zero_grad", [](Machine&, const Args& a) -> Results { return a.x().zero_grad(), Results(); }},
      {"grad", [](Machine&, const Args& a) -> Results { return collected(a.x()); }},
  };
  return table;
}

Results call(Machine& machine, const std::string& op, const Args& args) {
  if (const auto found = graph_calls().find(op); found != graph_calls().end()) {
    Results results = found->second(machine, args);
    args.check_all_used();
    return results;
  }
  const auto found = calls().find(op);
  ONESTEP_CHECK(Unsupported, found != calls().end(), "there is no ", op);
  Results results = found->second(args);
  args.check_all_used();
  return results;
}

/// True when a tensor that `value` names is missing.
bool lacks(const Tensors& tensors, const json& value) {
  if (value.is_string() && value.get_ref<const std::string&>()[0] == '$') {
    const auto found = tensors.find(value.get<std::string>().substr(1));
    return found == tensors.end() || !found->second.defined();
  }
  if (!value.is_structured()) return false;
  for (const json& inner : value)
    if (lacks(tensors, inner)) return true;
  return false;
}

char run(Machine& machine, const json& step, std::string& error) {
  static const json kNoKeywords = json::object();
  const json& keywords = step.size() > 3 ? step[3] : kNoKeywords;
  if (lacks(machine.tensors, step[2]) || lacks(machine.tensors, keywords)) return '-';
  try {
    const Results results = call(machine, step[1], Args(step[2], keywords, machine.tensors));
    const std::vector<std::string> names =
        step[0].is_array() ? step[0].get<std::vector<std::string>>() : std::vector{step[0].get<std::string>()};
    for (size_t i = 0; i < names.size(); ++i)
      if (!names[i].empty() && i < results.tensors.size()) machine.tensors[names[i]] = results.tensors[i];
  } catch (const Error& e) {
    error = e.what();
    return 'x';
  }
  return '.';
}

bool close(double got, double want, double relative, double absolute) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  return got == want || std::abs(got - want) <= absolute + relative * std::abs(want);
}

/// Of halves a few units in the last place.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e-6;
    case DType::float32:
      return 1e-4;
    case DType::float16:
      return 4e-3;
    case DType::bfloat16:
      return 3e-2;
    default:
      return 0;
  }
}

/// Both sums of a long program may round differently: the tolerance is that of the largest value.
bool same_values(const Tensor& got, const json& want, double absolute) {
  const std::vector<double> have = got.to_vector<double>();
  if (have.size() != want.size()) return false;
  std::vector<double> wanted;
  for (const json& v : want) wanted.push_back(v.is_null() ? have[wanted.size()] : testing::number(v));
  const double relative = tolerance(got.dtype());
  double largest = 1;
  for (const double v : wanted)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < have.size(); ++i)
    if (!close(have[i], wanted[i], relative, absolute + relative * largest / 10)) return false;
  return true;
}

json values_of(const Tensor& x) {
  json values = json::array();
  for (const double v : x.to_vector<double>())
    values.push_back(std::isfinite(v) ? json(v) : json(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"));
  return values;
}

/// What differs between the tensor and what PyTorch has under its name; empty if nothing.
std::string difference(const Tensor& got, const json& want, double absolute) try {
  if (want == "unusable") return "";  // to PyTorch, which refuses every use
  if (want.is_null() || !got.defined()) return want.is_null() == !got.defined() ? "" : "one of them is no tensor";
  std::ostringstream out;
  if (onestep::name(got.dtype()) != want[0].get<std::string>()) out << " dtype " << got.dtype() << " and not " << want[0];
  if (!(got.shape() == Shape(want[1].get<std::vector<int64_t>>()))) out << " shape " << got.shape() << " and not " << want[1];
  const std::string flags = std::string(got.requires_grad() ? "r" : "") + (got.is_leaf() ? "l" : "");
  if (flags != want[3].get<std::string>()) out << " flags '" << flags << "' and not " << want[3];
  if (!want[2].is_null() && !same_values(got, want[2], absolute)) out << " values " << values_of(got) << " and not " << want[2];
  const Tensor grad = collected(got);
  if (grad.defined() == want[4].is_null() || (grad.defined() && !same_values(grad, want[4], absolute)))
    out << " gradient " << (grad.defined() ? values_of(grad) : json()) << " and not " << want[4];
  return out.str();
} catch (const Error& e) {
  return std::string(" ") + e.what();
}

}  // namespace

Outcome check(const json& program) {
  const json &steps = program["steps"], &want = program["want"];
  const std::string status = want["status"];
  Machine machine;
  for (size_t i = 0; i < steps.size(); ++i) {
    std::string error;
    const char got = run(machine, steps[i], error);
    if (got == status[i]) continue;
    if (got == 'x') return {Verdict::refused, i, error};
    return {Verdict::accepted, i, steps[i].dump()};
  }
  machine.end_guards();
  for (const auto& [name, wanted] : want["tensors"].items()) {
    const auto found = machine.tensors.find(name);
    const std::string what =
        difference(found == machine.tensors.end() ? Tensor() : found->second, wanted, program.value("absolute", 0.0));
    if (!what.empty()) return {Verdict::different, steps.size(), name + ":" + what};
  }
  return {};
}

std::vector<std::string> operations() {
  std::vector<std::string> all;
  for (const auto& [name, call] : graph_calls()) all.push_back(name);
  for (const auto& [name, call] : calls()) all.push_back(name);
  return all;
}

std::string name(Verdict verdict) {
  constexpr const char* kNames[] = {"equal", "refused", "accepted", "different"};
  return kNames[static_cast<size_t>(verdict)];
}

}  // namespace onestep::programs
