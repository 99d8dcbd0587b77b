#include "nn/module.h"

#include <charconv>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>

#include "autograd/ops_math.h"
#include "base/format.h"

namespace onestep::nn {
namespace {

template <class T>
void add_field(Visitor::Fields<T>& fields, const std::string& name, T& field) {
  ONESTEP_CHECK(ConfigError, !name.empty() && name.find('.') == std::string::npos,
                "Visitor: a field's name is not empty and has no dot: \"", name, "\"");
  for (const auto& [taken, _] : fields) ONESTEP_CHECK(ConfigError, taken != name, "Visitor: field listed twice: ", name);
  fields.emplace_back(name, &field);
}

}  // namespace

void Visitor::parameter(const std::string& name, Tensor& tensor) {
  if (tensor.defined()) add_field(parameters_, name, tensor);
}

void Visitor::buffer(const std::string& name, Tensor& tensor) {
  if (tensor.defined()) add_field(buffers_, name, tensor);
}

void Visitor::child(const std::string& name, Module& module) { add_field(children_, name, module); }

Visitor Module::fields() const {
  Visitor fields;
  const_cast<Module&>(*this).visit(fields);
  return fields;
}

void Module::walk(const Walk& f, const std::string& prefix) const {
  const Visitor own = fields();
  f(prefix, own);
  for (const auto& [name, child] : own.children()) child->walk(f, prefix + name + ".");
}

NamedTensors Module::distinct_parameters() const {
  NamedTensors list;
  std::set<const Tensor::Impl*> listed;
  walk([&](const std::string& prefix, const Visitor& fields) {
    for (const auto& [name, tensor] : fields.parameters())
      if (listed.insert(&tensor->impl()).second) list.emplace_back(prefix + name, *tensor);
  });
  return list;
}

NamedTensors Module::named_parameters() { return distinct_parameters(); }

NamedTensors Module::named_buffers() {
  NamedTensors list;
  walk([&](const std::string& prefix, const Visitor& fields) {
    for (const auto& [name, tensor] : fields.buffers()) list.emplace_back(prefix + name, *tensor);
  });
  return list;
}

std::vector<Tensor> Module::parameters() {
  std::vector<Tensor> list;
  for (const auto& [_, tensor] : named_parameters()) list.push_back(tensor);
  return list;
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const auto& [_, parameter] : distinct_parameters()) count += parameter.numel();
  return count;
}

std::string Module::path_to(const Module& inner) const {
  std::string path;
  walk([&](const std::string& prefix, const Visitor& fields) {
    for (const auto& [name, child] : fields.children())
      if (child == &inner) path = prefix + name;
  });
  return path;
}

void Module::zero_grad() {
  for (Tensor& parameter : parameters()) parameter.zero_grad();
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> list{this};
  walk([&](const std::string& /*prefix*/, const Visitor& fields) {
    for (const auto& [_, child] : fields.children()) list.push_back(child);
    list.insert(list.end(), fields.tied().begin(), fields.tied().end());
  });
  return list;
}

void Module::train(bool mode) {
  for (Module* module : modules()) module->state_->training = mode;
}

EvaluationMode::EvaluationMode(Module& model) {
  for (Module* module : model.modules())
    if (module->is_training()) were_training_.push_back(module);
  model.eval();
}

EvaluationMode::~EvaluationMode() {
  for (Module* module : were_training_) module->state_->training = true;
}

void Module::to(DType dtype) {
  ONESTEP_CHECK(DTypeError, is_floating(dtype), "Module.to: needs a floating dtype: got ", dtype);
  const auto convert = [dtype](Tensor tensor) {
    if (!tensor.is_floating() || tensor.dtype() == dtype) return;
    Tensor converted = tensor.detach().to(dtype);
    if (tensor.requires_grad()) {
      converted.requires_grad_();
      if (const Tensor grad = tensor.grad(); grad.defined()) converted.set_grad(grad.to(dtype));
    }
    tensor.impl() = converted.impl();  // every copy of the handle gets the converted values
  };
  for (const auto& [_, parameter] : named_parameters()) convert(parameter);
  for (const auto& [_, buffer] : named_buffers()) convert(buffer);
}

NamedTensors Module::state_dict() const {
  NamedTensors list;
  walk([&](const std::string& prefix, const Visitor& fields) {
    for (const auto& [name, tensor] : fields.parameters()) list.emplace_back(prefix + name, tensor->detach());
    for (const auto& [name, tensor] : fields.buffers()) list.emplace_back(prefix + name, tensor->detach());
  });
  return list;
}

LoadReport Module::load_state_dict(NamedTensors state, bool strict) {
  std::map<std::string, Tensor> given;
  std::vector<std::string> repeated, shapes;
  for (const auto& [key, tensor] : state)
    if (!given.emplace(key, tensor).second) repeated.push_back(key);

  LoadReport report;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [key, target] : state_dict()) {
    const auto found = given.find(key);
    if (found == given.end()) {
      report.missing.push_back(key);
      continue;
    }
    const Tensor source = found->second;
    given.erase(found);
    if (source.shape() == target.shape()) {
      copies.emplace_back(target, source);
    } else {
      std::ostringstream difference;
      difference << key << " has " << target.shape() << " but " << source.shape() << " is given";
      shapes.push_back(difference.str());
    }
  }
  for (const auto& [key, _] : state)
    if (given.contains(key)) report.unexpected.push_back(key);

  std::vector<std::string> problems;
  if (strict && !report.missing.empty()) problems.push_back("missing keys " + join(report.missing, ", "));
  if (strict && !report.unexpected.empty()) problems.push_back("unexpected keys " + join(report.unexpected, ", "));
  if (!repeated.empty()) problems.push_back("repeated keys " + join(repeated, ", "));
  if (!shapes.empty()) problems.push_back("shapes differ: " + join(shapes, ", "));
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "; ") + problem;
  ONESTEP_CHECK(ConfigError, problems.empty(), "load_state_dict: does not fit ", name(), ": ", text);

  NoGradGuard no_grad;
  state.clear();
  given.clear();
  for (auto& [target, source] : copies) {
    copy_(target, source);
    source = {};
  }
  return report;
}

std::string Module::repr() const {
  const Visitor own = fields();
  const std::string extra = extra_repr();
  std::ostringstream text;
  text << name() << "(";
  if (own.children().empty()) {
    text << extra;
  } else {
    if (!extra.empty()) text << "\n  " << extra;
    for (const auto& [child_name, child] : own.children()) text << "\n  (" << child_name << "): " << indented(child->repr());
    text << "\n";
  }
  text << ")";
  return text.str();
}

namespace {
thread_local const Module* running_module = nullptr;
}  // namespace

RunningModule::RunningModule(const Module& module) : outer_(std::exchange(running_module, &module)) {}

RunningModule::~RunningModule() { running_module = outer_; }

const Module* RunningModule::current() { return running_module; }

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module.repr(); }

const char* python_repr(bool value) { return value ? "True" : "False"; }

std::string python_repr(double value) {
  char digits[64];
  const auto write = [&](std::chars_format format) {
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
  };
  // Python switches to an exponent below 1e-4 and from 1e16 on.
  const double size = value < 0 ? -value : value;
  if (size != 0 && (size < 1e-4 || size >= 1e16)) return write(std::chars_format::scientific);
  const std::string text = write(std::chars_format::fixed);
  return text.find_first_of(".n") == std::string::npos ? text + ".0" : text;  // nan and inf stay
}

std::string python_repr(const Shape& shape) {
  std::ostringstream text;
  text << "(";
  for (int i = 0; i < shape.rank(); ++i) text << (i > 0 ? ", " : "") << shape[i];
  text << (shape.rank() == 1 ? ",)" : ")");
  return text.str();
}

std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

}  // namespace onestep::nn
