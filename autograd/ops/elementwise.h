#pragma once
// Elementwise loops over one or two strided, broadcast operands. A row function gets numbers with a uniform step of 1, or of 0
// for one repeated element, so it can be a kernel of kernels.h or a `Loop` around a formula. For x [2, 300] + b [300],
// broadcasting gives b the strides (0, 1): two rows of 300 elements, each with the steps 1, 1 and 1 of x, b and the result; for
// x [2, 300] + c [2, 1] c has the strides (1, 0) and in each row the step 0. Of shorter rows, and of narrow dtypes, it gets
// blocks of the result, to which the operands are copied in its order (broadcast.h).
#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>

#include "autograd/creation.h"
#include "autograd/kernels/kernels.h"
#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"

namespace onestep::ops {

/// The dtype of a floating function of `dtype`: integers and bools become the default.
inline DType floating(DType dtype) { return is_floating(dtype) ? dtype : default_dtype(); }
inline Tensor as_floating(const Tensor& x) { return to(x, floating(x.dtype())); }

/// The number as a tensor of the dtype in which it meets x: beside a rank-0 x, too, it does not widen within its kind.
inline Tensor as_operand(const Tensor& x, Scalar number) {
  const DType dtype = result_type(x, number);
  return full({}, rounded(number, dtype), dtype);
}

/// Throws DTypeError naming `op` where x, written to in place, cannot hold a result of dtype `result`.
void check_result_dtype(const char* op, const Tensor& x, DType result);

// Sums, differences and products: int64 wraps around as in PyTorch (by way of uint64, where that is defined), bool is "or"
// and "and".
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T minus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// A row function from a formula: y[i] = f(x[i]), or y[i] = f(a[i], b[i]).
template <class F>
struct Loop {
  F f;

  template <class X, class Y>
  void operator()(const X* x, Y* y, int64_t n) const {
    kernels::parallel_for(n, kLoopCost, [=, this](int64_t i, int64_t end) {
      for (; i < end; ++i) y[i] = static_cast<Y>(f(x[i]));
    });
  }

  template <class A, class B, class Y>
  void operator()(const A* a, int64_t a_step, const B* b, int64_t b_step, Y* y, int64_t n) const {
    kernels::parallel_for(n, kLoopCost, [=, this](int64_t i, int64_t end) {
      if (a_step == 1 && b_step == 1) {
        for (; i < end; ++i) y[i] = static_cast<Y>(f(a[i], b[i]));
      } else {
        for (; i < end; ++i) y[i] = static_cast<Y>(f(a[i * a_step], b[i * b_step]));
      }
    });
  }
};
template <class F>
Loop(F) -> Loop<F>;

/// A kernel for the floating types and the formula that it computes for int64 and bool.
template <class K, class F>
struct KernelOrLoop {
  K kernel;
  F formula;

  template <class T>
  void operator()(const T* x, T* y, int64_t n) const {
    if constexpr (std::is_floating_point_v<T>)
      kernel(x, y, n);
    else
      Loop{formula}(x, y, n);
  }

  template <class T>
  void operator()(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) const {
    if constexpr (std::is_floating_point_v<T>)
      kernel(a, a_step, b, b_step, y, n);
    else
      Loop{formula}(a, a_step, b, b_step, y, n);
  }
};
template <class K, class F>
KernelOrLoop(K, F) -> KernelOrLoop<K, F>;

/// A row function whose types are known to `call` alone, so that the walk over the rows is compiled once for all ops. Of a
/// narrow result it gets the compute type.
struct MapRow {
  const void* row;
  void (*call)(const void* row, const void* x, void* y, int64_t n);
};
struct ZipRow {
  const void* row;
  void (*call)(const void* row, const void* a, int64_t a_step, const void* b, int64_t b_step, void* y, int64_t n);
};
void map_rows(Tensor& y, const Tensor& x, const MapRow& row);
void zip_rows(Tensor& y, const Tensor& a, const Tensor& b, const ZipRow& row);

/// y = row(x) elementwise, y contiguous or a result_of x, and of x's shape.
template <class X, class Y, class Row>
void map_into(Tensor& y, const Tensor& x, const Row& row) {
  map_rows(y, x, {&row, [](const void* f, const void* from, void* to, int64_t n) {
                    (*static_cast<const Row*>(f))(static_cast<const X*>(from), static_cast<Y*>(to), n);
                  }});
}

/// y = row(a, b) elementwise, y contiguous or a result_of both, and of the shape to which these broadcast.
template <class A, class B, class Y, class Row>
void zip_into(Tensor& y, const Tensor& a, const Tensor& b, const Row& row) {
  zip_rows(y, a, b,
           {&row, [](const void* f, const void* left, int64_t a_step, const void* right, int64_t b_step, void* to, int64_t n) {
              (*static_cast<const Row*>(f))(static_cast<const A*>(left), a_step, static_cast<const B*>(right), b_step,
                                            static_cast<Y*>(to), n);
            }});
}

/// While it lives, the elementwise walk of the op that `in_place` names with a _ behind writes to x itself where x is its first
/// operand and contiguous: the op is not recorded, and reads x no more.
class ResultInPlace {
 public:
  ResultInPlace(const char* in_place, const Tensor& x);
  ~ResultInPlace();
  ResultInPlace(const ResultInPlace&) = delete;
  ResultInPlace& operator=(const ResultInPlace&) = delete;
  /// Whether x may be the result of `op`.
  static bool is(const char* op, const Tensor& x);

 private:
  std::string_view op_;
  const Tensor& x_;
  const ResultInPlace* before_;
};

/// Elements for the result of a walk of `op` over x, and another operand, of x's dtype: x itself in place, else new ones, laid
/// out as the operands where all that are no single elements are one permutation of row-major (as in PyTorch), else row-major.
Tensor result_of(const char* op, const Tensor& x);
Tensor result_of(const char* op, const Tensor& x, const Tensor& other);

// Operands of a narrow dtype are widened, and the result is rounded to their dtype: a row function gets the compute types
// alone. The walks do it block by block, so that what is widened stays in the L1 cache.

/// row(x) elementwise, any dtype, in x's dtype; not recorded.
template <class Row>
Tensor map(const char* op, const Tensor& x, const Row& row) {
  Tensor y = result_of(op, x);
  dispatch(compute_type(x.dtype()), [&]<class T>() { map_into<T, T>(y, x, row); });
  return y;
}

/// row(x) elementwise for a floating x; not recorded. Throws DTypeError naming `op`.
template <class Row>
Tensor map_floating(const char* op, const Tensor& x, const Row& row) {
  return dispatch_floating(compute_type(x.dtype()), op, [&]<class T>() {
    Tensor y = result_of(op, x);
    map_into<T, T>(y, x, row);
    return y;
  });
}

/// row(a, b) elementwise for operands of one dtype, broadcast; not recorded. Throws ShapeError naming `op`.
template <class Row>
Tensor zip(const char* op, const Tensor& a, const Tensor& b, const Row& row) {
  Tensor y = result_of(op, a, b);
  dispatch(compute_type(a.dtype()), [&]<class T>() { zip_into<T, T, T>(y, a, b, row); });
  return y;
}

/// zip for floating operands. Throws DTypeError, too.
template <class Row>
Tensor zip_floating(const char* op, const Tensor& a, const Tensor& b, const Row& row) {
  Tensor y = result_of(op, a, b);
  dispatch_floating(compute_type(a.dtype()), op, [&]<class T>() { zip_into<T, T, T>(y, a, b, row); });
  return y;
}

/// condition ? a : b, for formulas of numbers and of tensors: a literal beside a float is a float.
template <class A, class B>
requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
auto select_if(bool condition, A a, B b) {
  using T = std::conditional_t<std::is_same_v<A, float> || std::is_same_v<B, float>, float, std::common_type_t<A, B>>;
  return condition ? static_cast<T>(a) : static_cast<T>(b);
}
inline Tensor select_if(const Tensor& condition, const Tensor& a, const Tensor& b) { return where(condition, a, b); }
inline Tensor select_if(const Tensor& condition, const Tensor& a, Scalar b) {
  return where(condition, a, full({}, b, a.dtype()));
}
inline Tensor select_if(const Tensor& condition, Scalar a, const Tensor& b) {
  return where(condition, full({}, a, b.dtype()), b);
}

/// The number as v's type, or as it is where v is a tensor.
template <class T>
auto number_like(const T&, Scalar number) {
  if constexpr (std::is_arithmetic_v<T>)
    return element<T>(number);
  else
    return number;
}

/// f(dy, v) for the gradient that arrived and a tensor of its floating dtype: the chain rule of an elementwise op. `f` is one
/// formula for numbers, as which it is the row function Row{f}, and, where the backward pass is recorded, for tensors.
template <template <class> class Row = Loop, class F>
Tensor chain(const Backward& b, const Tensor& v, const F& f) {
  if (b.recording()) return f(b.grad(), v);
  const DType dtype = b.grad().dtype();
  const Row<F> row{f};
  Tensor dx = empty(b.grad().shape(), dtype);
  dispatch_floating(compute_type(dtype), "backward", [&]<class T>() { zip_into<T, T, T>(dx, b.grad(), v, row); });
  return dx;
}

/// The gradient `g()` of input i in that input's shape (broadcasting undone), or nothing where none is needed.
template <class G>
Tensor grad_of(const Backward& back, size_t i, const G& g) {
  return back.needs(i) ? sum_to(g(), back.input_shape(i)) : Tensor();
}

}  // namespace onestep::ops
