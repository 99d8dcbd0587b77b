// Bits of integers, truth values of bools.
#include "autograd/ops/elementwise.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

/// f where the operands are integers or bools; others are refused before.
template <class F>
struct OnIntegers {
  F f;

  template <class T, class... Ts>
  T operator()(T a, Ts... b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(f(a, b...));
    else
      return a;
  }
};
template <class F>
OnIntegers(F) -> OnIntegers<F>;

void check_integers(const char* op, DType dtype, bool also_bool) {
  ONESTEP_CHECK(DTypeError, !is_floating(dtype) && (also_bool || dtype != DType::boolean), op, ": needs integers",
                also_bool ? " or bools" : "", ": got ", dtype, " (convert with to())");
}

template <class F>
Tensor bits(const char* op, const Tensor& a, const Tensor& b, const F& f, bool also_bool = true) {
  const DType dtype = result_type(a, b);
  check_integers(op, dtype, also_bool);
  return ops::zip(op, to(a, dtype), to(b, dtype), ops::Loop{OnIntegers{f}});
}

int64_t shifted_left(int64_t a, int64_t by) {
  return by < 0 || by >= 64 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << by);
}
int64_t shifted_right(int64_t a, int64_t by) { return a >> (by < 0 || by > 63 ? 63 : by); }

}  // namespace

Tensor bitwise_and(const Tensor& a, const Tensor& b) {
  return bits("bitwise_and", a, b, [](auto u, auto v) { return u & v; });
}
Tensor bitwise_or(const Tensor& a, const Tensor& b) {
  return bits("bitwise_or", a, b, [](auto u, auto v) { return u | v; });
}
Tensor bitwise_xor(const Tensor& a, const Tensor& b) {
  return bits("bitwise_xor", a, b, [](auto u, auto v) { return u ^ v; });
}
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b) {
  return bits(
      "bitwise_left_shift", a, b, [](auto u, auto v) { return shifted_left(u, v); }, false);
}
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b) {
  return bits(
      "bitwise_right_shift", a, b, [](auto u, auto v) { return shifted_right(u, v); }, false);
}
Tensor bitwise_and(const Tensor& a, Scalar b) { return bitwise_and(a, ops::as_operand(a, b)); }
Tensor bitwise_or(const Tensor& a, Scalar b) { return bitwise_or(a, ops::as_operand(a, b)); }
Tensor bitwise_xor(const Tensor& a, Scalar b) { return bitwise_xor(a, ops::as_operand(a, b)); }
Tensor bitwise_left_shift(const Tensor& a, Scalar b) { return bitwise_left_shift(a, ops::as_operand(a, b)); }
Tensor bitwise_right_shift(const Tensor& a, Scalar b) { return bitwise_right_shift(a, ops::as_operand(a, b)); }

Tensor bitwise_not(const Tensor& x) {
  check_integers("bitwise_not", x.dtype(), true);
  if (x.dtype() == DType::boolean) return logical_not(x);
  return ops::map("bitwise_not", x, ops::Loop{OnIntegers{[](auto v) { return v ^ static_cast<decltype(v)>(-1); }}});
}

}  // namespace onestep
