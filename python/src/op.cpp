#include "python/src/op.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "python/src/protocol.h"

namespace onestep::python {
namespace {

constexpr size_t kMost = 24;  // parameters of an op

/// A callable object: of the module, or bound to a tensor as its first argument.
struct Op {
  PyObject_HEAD vectorcallfunc call;
  const std::vector<std::shared_ptr<Overload>>* overloads;
  PyObject* name;
};
PyTypeObject* op_type = nullptr;

using Overloads = std::map<std::string, std::vector<std::shared_ptr<Overload>>>;
Overloads functions, methods;

// ---- reading signatures

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Kind kind_named(std::string_view name) {
  static const std::map<std::string_view, Kind> kinds = {
      {"Tensor", Kind::tensor},    {"Scalar", Kind::scalar},  {"int", Kind::integer},     {"float", Kind::number},
      {"bool", Kind::boolean},     {"int[]", Kind::integers}, {"float[]", Kind::numbers}, {"int?[]", Kind::sizes},
      {"Tensor[]", Kind::tensors}, {"dtype", Kind::dtype},    {"str", Kind::string},      {"Generator", Kind::generator},
      {"any", Kind::any}};
  return kinds.at(name);
}

PyObject* default_value(std::string_view text) {
  if (text == "None") return Py_NewRef(Py_None);
  if (text == "True") return Py_NewRef(Py_True);
  if (text == "False") return Py_NewRef(Py_False);
  if (text.front() == '"') return PyUnicode_FromStringAndSize(text.data() + 1, static_cast<Py_ssize_t>(text.size()) - 2);
  if (text == "()") return PyTuple_New(0);
  if (text == "inf") return PyFloat_FromDouble(Py_HUGE_VAL);
  const std::string number(text);
  if (number.find_first_of(".e") == std::string::npos) return PyLong_FromString(number.c_str(), nullptr, 10);
  return PyFloat_FromDouble(std::stod(number));
}

Overload read_signature(const char* signature) {
  Overload overload;
  overload.signature = signature;
  const std::string_view text(overload.signature);
  const size_t open = text.find('('), close = text.rfind(')');
  overload.name = text.substr(0, open);
  std::string_view rest = text.substr(open + 1, close - open - 1);
  bool by_name = false;
  while (!(rest = trim(rest)).empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = trim(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (part == "*") {
      by_name = true;
      continue;
    }
    const size_t space = part.find(' '), equals = part.find('=');
    std::string_view type = part.substr(0, space);
    Parameter parameter{};
    parameter.none = type.back() == '?' || type == "any";
    if (type.back() == '?') type.remove_suffix(1);
    parameter.kind = kind_named(type);
    parameter.name = PyUnicode_InternFromString(std::string(part.substr(space + 1, equals - space - 1)).c_str());
    if (equals != std::string_view::npos) parameter.value = default_value(part.substr(equals + 1));
    overload.parameters.push_back(parameter);
    if (!by_name) ++overload.positional;
  }
  if (overload.parameters.size() > kMost) throw std::logic_error("signature: too many parameters");
  return overload;
}

// ---- matching arguments

/// The arguments of a call in the order of the parameters.
struct Arguments {
  std::array<PyObject*, kMost> values;
  PyObject* sizes = nullptr;  ///< Of numbers that were given without brackets.
  ~Arguments() { Py_XDECREF(sizes); }
};

/// A tensor is taken as a number only where no overload takes it as a tensor, and never one that requires grad, which would be
/// lost.
enum class Numbers { plain, tensors };

bool fits(const Parameter& parameter, PyObject* value, Numbers numbers) {
  if (value == Py_None) return parameter.none;
  if (parameter.kind == Kind::any) return !has_protocol(value);
  const bool number = parameter.kind == Kind::scalar || parameter.kind == Kind::number || parameter.kind == Kind::integer;
  if (number && is_tensor(value) && (numbers == Numbers::plain || tensor_of(value).requires_grad())) return false;
  return accepts(parameter.kind, value);
}

/// The text of a keyword, which need not be valid Unicode.
const char* text_of(PyObject* keyword) {
  const char* text = PyUnicode_AsUTF8(keyword);
  if (!text) throw ErrorSet{};
  return text;
}

/// Which parameter a keyword means: by its name, or by another that NumPy, or PyTorch for methods, has for it.
size_t find_parameter(const Overload& overload, PyObject* keyword) {
  for (size_t i = 0; i < overload.parameters.size(); ++i)
    if (overload.parameters[i].name == keyword) return i;
  const char* given = text_of(keyword);
  static constexpr std::array<std::pair<const char*, const char*>, 6> others = {{{"axis", "dim"},
                                                                                 {"keepdims", "keepdim"},
                                                                                 {"x", "input"},
                                                                                 {"self", "input"},
                                                                                 {"x2", "other"},
                                                                                 {"split_size", "split_size_or_sections"}}};
  for (size_t i = 0; i < overload.parameters.size(); ++i) {
    const char* name = PyUnicode_AsUTF8(overload.parameters[i].name);
    if (std::strcmp(name, given) == 0) return i;
    for (const auto& [other, meant] : others)
      if (std::strcmp(other, given) == 0 && std::strcmp(meant, name) == 0) return i;
  }
  return overload.parameters.size();
}

/// Whether a call fits an overload: the arguments go to `found`, and `why`, unless null, says why not.
bool match(const Overload& overload, PyObject* const* args, size_t count, PyObject* keywords, Arguments& found, Numbers numbers,
           std::string* why) {
  const std::vector<Parameter>& parameters = overload.parameters;
  const auto no = [&](auto&&... parts) {
    if (why) (*why += ... += parts);
    return false;
  };
  const auto name = [&](size_t i) { return "argument '" + std::string(PyUnicode_AsUTF8(parameters[i].name)) + "'"; };
  for (size_t i = 0; i < parameters.size(); ++i) found.values[i] = nullptr;
  size_t given = count;
  if (count > 0 && overload.positional > 0) {  // x.view(2, 3), zeros(2, 3)
    const size_t place = parameters[0].kind == Kind::tensor ? 1 : 0;
    if (place < overload.positional && parameters[place].kind == Kind::integers && count > place &&
        (PyLong_Check(args[place]) || (count > place + 1 && PyIndex_Check(args[place])))) {
      size_t stop = place + 1;  // all that are left, unless another parameter comes by position
      if (overload.positional == place + 1) stop = count;
      if (stop > place + 1) {
        for (size_t i = place; i < count; ++i)
          if (!PyIndex_Check(args[i]) || PyBool_Check(args[i]))
            return no("sizes must be integers, not ", Py_TYPE(args[i])->tp_name);
        found.sizes = PyTuple_New(static_cast<Py_ssize_t>(count - place));
        for (size_t i = place; i < count; ++i)
          PyTuple_SET_ITEM(found.sizes, static_cast<Py_ssize_t>(i - place), Py_NewRef(args[i]));
        found.values[place] = found.sizes;
        given = place;
      }
    }
  }
  if (given > overload.positional)
    return no("takes ", std::to_string(overload.positional), " positional arguments but ", std::to_string(count),
              " were given");
  for (size_t i = 0; i < given; ++i) {
    if (!fits(parameters[i], args[i], numbers)) return no(name(i), " cannot be ", kind_of(args[i]));
    found.values[i] = args[i];
  }
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    PyObject* value = args[count + static_cast<size_t>(k)];
    const size_t i = find_parameter(overload, keyword);
    if (i == parameters.size()) return no("got an unexpected keyword argument '", PyUnicode_AsUTF8(keyword), "'");
    if (found.values[i]) return no("got multiple values for ", name(i));
    if (!fits(parameters[i], value, numbers)) return no(name(i), " cannot be ", kind_of(value));
    found.values[i] = value;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (found.values[i]) continue;
    if (!parameters[i].value) return no("missing ", name(i));
    found.values[i] = parameters[i].value;
  }
  return true;
}

PyObject* no_match(const Op& op, PyObject* const* args, size_t count, PyObject* keywords) {
  const std::vector<std::shared_ptr<Overload>>& overloads = *op.overloads;
  std::string message = overloads.front()->name + "(): ";
  Arguments found;
  if (overloads.size() == 1) {
    match(*overloads.front(), args, count, keywords, found, Numbers::tensors, &message);
  } else {
    message += "received an invalid combination of arguments - got (";
    for (size_t i = 0; i < count; ++i) message += std::string(i ? ", " : "") + Py_TYPE(args[i])->tp_name;
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k)
      message += std::string(count + static_cast<size_t>(k) ? ", " : "") + text_of(PyTuple_GET_ITEM(keywords, k)) + "=" +
                 Py_TYPE(args[count + static_cast<size_t>(k)])->tp_name;
    message += "), but expected one of:";
    for (const auto& overload : overloads) message += "\n * " + overload->signature;
  }
  fail<DTypeError>(message);
}

PyObject* op_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords);

/// Whether the op's tensors may be numbers, as in torch.add(1, x).
bool takes_numbers(std::string_view name) {
  static const std::set<std::string_view> names = {"add",
                                                   "sub",
                                                   "subtract",
                                                   "mul",
                                                   "multiply",
                                                   "div",
                                                   "divide",
                                                   "true_divide",
                                                   "floor_divide",
                                                   "bitwise_or",
                                                   "bitwise_and",
                                                   "bitwise_xor",
                                                   "bitwise_left_shift",
                                                   "bitwise_right_shift"};
  return names.count(name) == 1;
}

/// The number as a tensor that meets `other` (which may be a number) as the number would.
PyObject* as_operand(PyObject* number, PyObject* other) {
  const Scalar value = scalar_from(number);
  DType dtype = implied_dtype(value.dtype);
  if (is_tensor(other) && tensor_of(other).is_floating()) dtype = tensor_of(other).dtype();
  return wrap(full(Shape{}, value, dtype));
}

/// The op with its first two arguments as tensors, where the first is a number.
PyObject* call_with_number(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  std::vector<PyObject*> all(args, args + count + static_cast<size_t>(keywords ? PyTuple_GET_SIZE(keywords) : 0));
  const auto first = nanobind::steal(as_operand(args[0], args[1]));
  const auto second = is_tensor(args[1]) ? nanobind::borrow(args[1]) : nanobind::steal(as_operand(args[1], args[0]));
  all[0] = first.ptr(), all[1] = second.ptr();
  return op_call(self, all.data(), count, keywords);
}

/// Where the keyword `out` is among the keywords; -1 where it is not.
Py_ssize_t place_of_out(PyObject* keywords) {
  for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, k), "out") == 0) return k;
  return -1;
}

/// op(..., out=y): the op without it, whose result y takes.
PyObject* call_with_out(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords, Py_ssize_t out) {
  std::vector<PyObject*> others(args, args + count + static_cast<size_t>(PyTuple_GET_SIZE(keywords)));
  others.erase(others.begin() + static_cast<Py_ssize_t>(count) + out);
  auto names = nanobind::steal<nanobind::list>(PySequence_List(keywords));
  if (PySequence_DelItem(names.ptr(), out) < 0) throw ErrorSet{};
  PyObject* const target = args[static_cast<Py_ssize_t>(count) + out];
  const std::vector<Parameter>& parameters = reinterpret_cast<Op*>(self)->overloads->front()->parameters;
  const bool makes = std::any_of(parameters.begin(), parameters.end(),
                                 [](const Parameter& p) { return PyUnicode_CompareWithASCIIString(p.name, "layout") == 0; });
  if (makes && is_tensor(target) &&
      PySequence_Contains(names.ptr(), nanobind::str("dtype").ptr()) == 0) {  // what makes a tensor takes out's dtype
    names.append("dtype");
    others.push_back(dtype_object(tensor_of(target).dtype()));
  }
  const nanobind::tuple rest(names);
  const auto result = nanobind::steal(op_call(self, others.data(), count, rest.ptr()));
  if (!result.is_valid()) throw ErrorSet{};
  return write_out(reinterpret_cast<Op*>(self)->name, result.ptr(), target, {args, count});
}

PyObject* op_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
  const Op& op = *reinterpret_cast<Op*>(self);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  if (const Py_ssize_t out = place_of_out(keywords); out >= 0)
    return guarded([&] { return call_with_out(self, args, count, keywords, out); });
  try {
    for (const Numbers numbers : {Numbers::plain, Numbers::tensors})
      for (const std::shared_ptr<Overload>& overload : *op.overloads) {
        Arguments found;
        if (match(*overload, args, count, keywords, found, numbers, nullptr)) return call(*overload, found.values.data());
      }
    if (count >= 2 && !is_tensor(args[0]) && accepts(Kind::scalar, args[0]) &&
        (is_tensor(args[1]) || (accepts(Kind::scalar, args[1]) && !op.overloads->front()->name.starts_with("bitwise"))) &&
        takes_numbers(op.overloads->front()->name))
      return call_with_number(self, args, count, keywords);
    const size_t all = count + static_cast<size_t>(keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (PyObject* const value = answering({args, all})) return ask(value, self, args, count, keywords);
    return no_match(op, args, count, keywords);
  } catch (const UnknownNumber& error) {
    if (!has_protocol(error.value())) return set_error();
    return guarded([&] { return ask(error.value(), self, args, count, keywords); });
  } catch (...) {
    return set_error();
  }
}

// ---- the type of the objects

PyObject* op_get(PyObject* self, PyObject* object, PyObject* /*type*/) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}
PyObject* op_repr(PyObject* self) {
  return PyUnicode_FromFormat("<built-in method %U of onestep>", reinterpret_cast<Op*>(self)->name);
}
PyObject* op_name(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<Op*>(self)->name); }
PyObject* op_doc(PyObject* self, void*) {
  std::string text;
  for (const auto& overload : *reinterpret_cast<Op*>(self)->overloads) text += overload->signature + "\n";
  const std::string_view doc = doc_of(reinterpret_cast<Op*>(self)->overloads->front()->name);
  if (!doc.empty()) text += "\n" + std::string(doc);
  return PyUnicode_FromString(text.c_str());
}
/// For inspect and help: from the first overload, made by onestep/_signatures.py.
PyObject* op_signature(PyObject* self, void*) {
  return guarded([&] {
    const nanobind::object make = nanobind::module_::import_("onestep._signatures").attr("signature");
    return make(nanobind::str(reinterpret_cast<Op*>(self)->overloads->front()->signature.c_str())).release().ptr();
  });
}
PyObject* op_module(PyObject*, void*) { return PyUnicode_FromString("onestep"); }
PyObject* op_reduce(PyObject* self, PyObject*) { return op_name(self, nullptr); }
PyObject* op_signatures(PyObject* self, void*) {
  PyObject* list = PyList_New(0);
  for (const auto& overload : *reinterpret_cast<Op*>(self)->overloads) {
    PyObject* text = PyUnicode_FromString(overload->signature.c_str());
    PyList_Append(list, text);
    Py_DECREF(text);
  }
  return list;
}
void op_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<Op*>(self)->name);
  type->tp_free(self);
  Py_DECREF(type);
}

void make_op_type() {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Op, call), READONLY, nullptr}, {}};
  static PyGetSetDef properties[] = {{"__name__", op_name, nullptr, nullptr, nullptr},
                                     {"__qualname__", op_name, nullptr, nullptr, nullptr},
                                     {"__module__", op_module, nullptr, nullptr, nullptr},
                                     {"__doc__", op_doc, nullptr, nullptr, nullptr},
                                     {"__signature__", op_signature, nullptr, nullptr, nullptr},
                                     {"__signatures__", op_signatures, nullptr, "The overloads, as text.", nullptr},
                                     {}};
  static PyMethodDef reduce[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(op_get)},
                                {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
                                {Py_tp_members, members},
                                {Py_tp_getset, properties},
                                {Py_tp_methods, reduce},
                                {}};
  static PyType_Spec spec = {
      "onestep.Op", sizeof(Op), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      slots};
  op_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!op_type) throw ErrorSet{};
}

PyObject* make_op(const std::string& name, const std::vector<std::shared_ptr<Overload>>& overloads) {
  auto* op = reinterpret_cast<Op*>(op_type->tp_alloc(op_type, 0));
  if (!op) throw ErrorSet{};
  op->call = op_call;
  op->overloads = &overloads;
  op->name = PyUnicode_InternFromString(name.c_str());
  return reinterpret_cast<PyObject*>(op);
}

}  // namespace

void add_overload(const char* signature, void (*function)(), Overload::Thunk thunk, bool as_function, bool as_method) {
  auto overload = std::make_shared<Overload>(read_signature(signature));
  overload->function = function;
  overload->thunk = thunk;
  overload->autocast = autocast_rule(overload->name);
  if (as_function) functions[overload->name].push_back(overload);
  if (as_method) methods[overload->name].push_back(overload);
}

void alias(const char* name, const char* of) {
  for (Overloads* table : {&functions, &methods})
    if (const auto found = table->find(of); found != table->end()) (*table)[name] = found->second;
}

void add_ops(PyObject* module) {
  make_op_type();
  for (const auto& [name, overloads] : functions) {
    PyObject* op = make_op(name, overloads);
    if (PyModule_AddObject(module, name.c_str(), op) < 0) throw ErrorSet{};
  }
  for (const auto& [name, overloads] : methods) {
    PyObject* op = make_op(name, overloads);
    if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), name.c_str(), op) < 0) throw ErrorSet{};
    Py_DECREF(op);
  }
}

}  // namespace onestep::python
