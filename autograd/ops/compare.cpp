// Comparisons and logic: bool results without gradient.
#include <cmath>
#include <cstring>

#include "autograd/operators.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/vectorized.h"

namespace onestep {
namespace {

/// f(a, b) elementwise as bool, in the dtype in which the operands meet.
template <class F>
Tensor compare(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const NoGradGuard no_grad;
  const DType dtype = result_type(a, b);
  const Tensor x = to(a, dtype), y = to(b, dtype);
  Tensor result = empty(broadcast_shapes(op, x.shape(), y.shape()), DType::boolean);
  dispatch(compute_type(dtype), [&]<class T>() { ops::zip_into<T, T, bool>(result, x, y, ops::Loop{f}); });
  return result;
}

/// f(b, a), with errors that name a first.
template <class F>
Tensor swapped(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  broadcast_shapes(op, a.shape(), b.shape());
  return compare(op, b, a, f);
}

/// f(x) elementwise as bool.
template <class F>
Tensor test(const Tensor& x, const F& f) {
  Tensor result = empty(x.shape(), DType::boolean);
  dispatch(compute_type(x.dtype()), [&]<class T>() { ops::map_into<T, bool>(result, x, ops::Loop{f}); });
  return result;
}

template <class F>
Tensor compare(const Tensor& a, Scalar b, const F& f) {
  const NoGradGuard no_grad;
  const DType dtype = result_type(a, b);
  const Tensor x = to(a, dtype);
  Tensor result = empty(x.shape(), DType::boolean);
  dispatch(compute_type(dtype), [&]<class T>() {
    const T value = ops::element<T>(ops::rounded(b, dtype));
    ops::map_into<T, bool>(result, x, ops::Loop{[&](T v) { return f(v, value); }});
  });
  return result;
}

constexpr auto kEq = [](auto a, auto b) { return a == b; };
constexpr auto kNe = [](auto a, auto b) { return a != b; };
constexpr auto kLt = [](auto a, auto b) { return a < b; };
constexpr auto kLe = [](auto a, auto b) { return a <= b; };
constexpr auto kGt = [](auto a, auto b) { return a > b; };
constexpr auto kGe = [](auto a, auto b) { return a >= b; };

/// f on the truth values of a and b.
template <class F>
Tensor logical(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const NoGradGuard no_grad;
  Tensor result = empty(broadcast_shapes(op, a.shape(), b.shape()), DType::boolean);
  ops::zip_into<bool, bool, bool>(result, to(a, DType::boolean), to(b, DType::boolean), ops::Vectorized{f});
  return result;
}

/// The dtype of any and all: bool, but uint8 of uint8 (as PyTorch's old masks).
DType truth_type(const Tensor& x) { return x.dtype() == DType::uint8 ? DType::uint8 : DType::boolean; }

bool is_among(const bool* values, int64_t n, bool wanted) {
  return n > 0 && std::memchr(values, wanted ? 1 : 0, static_cast<size_t>(n)) != nullptr;  // std::find looks at one at a time
}

/// Whether any element along `dims` is true, or with `wanted` false, whether all are: y = wanted where one is `wanted`.
Tensor any_along(const char* op, const Tensor& x, const Shape& wanted_dims, bool keepdim, bool wanted) {
  const NoGradGuard no_grad;
  const Tensor truth = to(x, DType::boolean);
  const Shape dims = normalize_dims(op, wanted_dims, x.dim());
  const Tensor y = ops::reduce<bool>(truth, dims, [=](const Tensor& values, bool* to, const ops::Blocks& b) {
    const bool* const from = values.data<bool>();
    kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
      for (; o < end; ++o) {
        const bool* const block = from + o * b.reduced * b.inner;
        bool* const row = to + o * b.inner;
        std::fill_n(row, b.inner, !wanted);
        if (b.inner == 1) {
          if (is_among(block, b.reduced, wanted)) *row = wanted;
          continue;
        }
        for (int64_t r = 0; r < b.reduced; ++r)
          for (int64_t i = 0; i < b.inner; ++i) row[i] = ops::select_value(block[r * b.inner + i] == wanted, wanted, row[i]);
      }
    });
  });
  return to(ops::without_dims(y, x.shape(), dims, keepdim), truth_type(x));
}

/// Whether any element is true (or, with `wanted` false, whether any is not).
bool contains(const Tensor& x, bool wanted) {
  const NoGradGuard no_grad;
  const Tensor truth = contiguous(to(x, DType::boolean));
  return is_among(truth.data<bool>(), truth.numel(), wanted);
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare("eq", a, b, kEq); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare("ne", a, b, kNe); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare("lt", a, b, kLt); }
Tensor le(const Tensor& a, const Tensor& b) { return compare("le", a, b, kLe); }
Tensor gt(const Tensor& a, const Tensor& b) { return swapped("gt", a, b, kLt); }
Tensor ge(const Tensor& a, const Tensor& b) { return swapped("ge", a, b, kLe); }
Tensor eq(const Tensor& a, Scalar b) { return compare(a, b, kEq); }
Tensor ne(const Tensor& a, Scalar b) { return compare(a, b, kNe); }
Tensor lt(const Tensor& a, Scalar b) { return compare(a, b, kLt); }
Tensor le(const Tensor& a, Scalar b) { return compare(a, b, kLe); }
Tensor gt(const Tensor& a, Scalar b) { return compare(a, b, kGt); }
Tensor ge(const Tensor& a, Scalar b) { return compare(a, b, kGe); }

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return logical("logical_and", a, b, [](bool u, bool v) { return u & v; });
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return logical("logical_or", a, b, [](bool u, bool v) { return u | v; });
}
Tensor logical_xor(const Tensor& a, const Tensor& b) { return logical("logical_xor", a, b, kNe); }
Tensor logical_not(const Tensor& x) {
  Tensor y = empty(x.shape(), DType::boolean);
  // Bytes of 0 or 1: of bools compilers make no vectors.
  ops::map_into<uint8_t, uint8_t>(y, to(x, DType::boolean), ops::Vectorized{[](uint8_t v) { return v ^ 1; }});
  return y;
}

Tensor any(const Tensor& x) { return full({}, contains(x, true), truth_type(x)); }
Tensor all(const Tensor& x) { return full({}, !contains(x, false), truth_type(x)); }

Tensor any(const Tensor& x, const Shape& dims, bool keepdim) { return any_along("any", x, dims, keepdim, true); }
Tensor all(const Tensor& x, const Shape& dims, bool keepdim) { return any_along("all", x, dims, keepdim, false); }

Tensor isnan(const Tensor& x) {
  return test(x, [](auto v) { return v != v; });
}
Tensor isfinite(const Tensor& x) {
  return test(x, [](auto v) { return v - v == 0; });
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && !contains(eq(a, b), false);
}

Tensor signbit(const Tensor& x) {
  return test(x, []<class T>(T v) {
    if constexpr (std::is_floating_point_v<T>)
      return std::copysign(T(1), v) < 0;  // of which there are vector instructions
    else
      return v < T(0);
  });
}

Tensor isinf(const Tensor& x) {
  return test(x, [](auto v) { return v - v != 0 && v == v; });
}
Tensor isposinf(const Tensor& x) { return logical_and(isinf(x), gt(x, 0)); }
Tensor isneginf(const Tensor& x) { return logical_and(isinf(x), lt(x, 0)); }

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  ops::check_same_dtype("isclose", a, b);
  ONESTEP_CHECK(ConfigError, rtol >= 0 && atol >= 0, "isclose: a negative tolerance: rtol ", rtol, ", atol ", atol);
  const NoGradGuard no_grad;
  return compare("isclose", to(a, DType::float64), to(b, DType::float64), [=](auto u, auto v) {
    if (equal_nan && u != u && v != v) return true;
    return u == v || (std::isfinite(static_cast<double>(v)) &&
                      std::abs(static_cast<double>(u - v)) <= atol + rtol * std::abs(static_cast<double>(v)));
  });
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  ops::check_same_dtype("allclose", a, b);
  broadcast_shapes("allclose", a.shape(), b.shape());
  return !contains(isclose(a, b, rtol, atol, equal_nan), false);
}

}  // namespace onestep
