#pragma once
// How an op becomes a Python function: one line with its signature and the C++ function.
//   both("softmax(Tensor input, int dim, dtype? dtype=None)", +[](const Tensor& x, int64_t dim, std::optional<DType> t) {...});
// Several lines of one name are overloads, tried in order. The kinds are those of convert.h, `?` also takes None, `[]` a list
// (a single number for all dims, too), and sizes in the first place may be given without brackets. What follows `*` goes by
// name.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/convert.h"

namespace onestep::python {

struct Parameter {
  Kind kind;
  bool none = false;          ///< Takes None.
  PyObject* name = nullptr;   ///< Interned.
  PyObject* value = nullptr;  ///< The default.
};

/// What a listed op does under autocast: computes as without it, on operands of this dtype.
struct AutocastRule {
  std::optional<DType> operands;
};

/// One signature with its function; `thunk` converts the arguments (one a parameter), calls it and converts the result.
struct Overload {
  using Thunk = PyObject* (*)(void (*function)(), PyObject* const* arguments, const char* name);
  std::string name, signature;
  std::vector<Parameter> parameters;
  size_t positional = 0;  ///< How many may go by position.
  void (*function)() = nullptr;
  Thunk thunk = nullptr;
  const AutocastRule* autocast = nullptr;  ///< Null unless listed.
};

/// The rule for an op by its name; null where there is none.
const AutocastRule* autocast_rule(std::string_view op);

/// Calls the op with an argument for each parameter; under autocast as its rule has it.
PyObject* call(const Overload& overload, PyObject* const* arguments);

template <bool kRelease, class R, class... A>
struct Caller {
  template <size_t... I>
  static PyObject* run(R (*function)(A...), PyObject* const* arguments, const char* name, std::index_sequence<I...>) {
    if constexpr (kRelease) {
      using Values = std::tuple<
          std::conditional_t<std::is_same_v<A, TensorList>, std::vector<Tensor>, decltype(From<A>::get(nullptr))>...>;
      Values values{From<A>::get(arguments[I])...};
      R result = [&] {
        const nanobind::gil_scoped_release released;
        return function(std::get<I>(values)...);
      }();
      return to_python(std::move(result), name);
    } else {
      return to_python(function(From<A>::get(arguments[I])...), name);
    }
  }
  static PyObject* thunk(void (*function)(), PyObject* const* arguments, const char* name) {
    return run(reinterpret_cast<R (*)(A...)>(function), arguments, name, std::index_sequence_for<A...>());
  }
};

void add_overload(const char* signature, void (*function)(), Overload::Thunk thunk, bool as_function, bool as_method);

/// Binds a C++ function as a function of the module and a method of Tensor, or as one of them.
template <class R, class... A>
void both(const char* signature, R (*function)(A...)) {
  add_overload(signature, reinterpret_cast<void (*)()>(function), Caller<false, R, A...>::thunk, true, true);
}
template <class R, class... A>
void function(const char* signature, R (*function)(A...)) {
  add_overload(signature, reinterpret_cast<void (*)()>(function), Caller<false, R, A...>::thunk, true, false);
}
template <class R, class... A>
void method(const char* signature, R (*function)(A...)) {
  add_overload(signature, reinterpret_cast<void (*)()>(function), Caller<false, R, A...>::thunk, false, true);
}
/// The same for ops that take long: other Python threads run meanwhile.
template <class R, class... A>
void long_both(const char* signature, R (*function)(A...)) {
  add_overload(signature, reinterpret_cast<void (*)()>(function), Caller<true, R, A...>::thunk, true, true);
}
template <class R, class... A>
void long_function(const char* signature, R (*function)(A...)) {
  add_overload(signature, reinterpret_cast<void (*)()>(function), Caller<true, R, A...>::thunk, true, false);
}
/// What `op(..., out=y)` gives: y, or a tuple of several, that has taken the result's values and, where it has another one, its
/// shape. Throws where y's dtype cannot hold them, a gradient would be lost, or y shares memory with itself or an input.
PyObject* write_out(PyObject* name, PyObject* result, PyObject* out, std::span<PyObject* const> inputs = {});

/// Another name for what is bound.
void alias(const char* name, const char* of);

/// What the `///` comment of a function in the C++ headers says; empty where there is none.
std::string_view doc_of(std::string_view name);

/// Puts everything bound so far into the module and the type Tensor.
void add_ops(PyObject* module);

// The tables.
void bind_pointwise();
void bind_math();
void bind_inplace();
void bind_reduce();
void bind_shape();
void bind_index();
void bind_nn();
void bind_loss();
void bind_conv();
void bind_creation();
void bind_random();
void bind_out();

}  // namespace onestep::python
