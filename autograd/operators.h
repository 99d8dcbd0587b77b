#pragma once
// Operators between tensors and numbers.
#include "autograd/ops_math.h"
#include "autograd/ops_pointwise.h"

namespace onestep {

// ---- operators -----------------------------------------------------------------------------------------------------------

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
Tensor operator-(Scalar a, const Tensor& b);
Tensor operator/(Scalar a, const Tensor& b);
inline Tensor operator-(const Tensor& x) { return neg(x); }
/// The remainder with the sign of b, as in Python.
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, Scalar b) { return remainder(a, b); }
inline Tensor operator%(Scalar a, const Tensor& b) { return remainder(a, b); }

// Bits of integers; of bools "and", "or", "exclusive or" and "not".
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator&(const Tensor& a, Scalar b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, Scalar b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, Scalar b) { return bitwise_xor(a, b); }
inline Tensor operator&(Scalar a, const Tensor& b) { return bitwise_and(b, a); }
inline Tensor operator|(Scalar a, const Tensor& b) { return bitwise_or(b, a); }
inline Tensor operator^(Scalar a, const Tensor& b) { return bitwise_xor(b, a); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
inline Tensor operator<<(const Tensor& a, const Tensor& b) { return bitwise_left_shift(a, b); }
inline Tensor operator>>(const Tensor& a, const Tensor& b) { return bitwise_right_shift(a, b); }
inline Tensor operator<<(const Tensor& a, Scalar b) { return bitwise_left_shift(a, b); }
inline Tensor operator>>(const Tensor& a, Scalar b) { return bitwise_right_shift(a, b); }

// In place, as Python's: the memory of x changes, and every tensor that shares it.
inline const Tensor& operator+=(const Tensor& x, const Tensor& y) { return add_(x, y), x; }
inline const Tensor& operator-=(const Tensor& x, const Tensor& y) { return sub_(x, y), x; }
inline const Tensor& operator*=(const Tensor& x, const Tensor& y) { return mul_(x, y), x; }
inline const Tensor& operator/=(const Tensor& x, const Tensor& y) { return div_(x, y), x; }
inline const Tensor& operator+=(const Tensor& x, Scalar y) { return add_(x, y), x; }
inline const Tensor& operator-=(const Tensor& x, Scalar y) { return sub_(x, y), x; }
inline const Tensor& operator*=(const Tensor& x, Scalar y) { return mul_(x, y), x; }
inline const Tensor& operator/=(const Tensor& x, Scalar y) { return div_(x, y), x; }
inline const Tensor& operator&=(const Tensor& x, const Tensor& y) { return bitwise_and_(x, y), x; }
inline const Tensor& operator|=(const Tensor& x, const Tensor& y) { return bitwise_or_(x, y), x; }
inline const Tensor& operator^=(const Tensor& x, const Tensor& y) { return bitwise_xor_(x, y), x; }
inline const Tensor& operator&=(const Tensor& x, Scalar y) { return bitwise_and_(x, y), x; }
inline const Tensor& operator|=(const Tensor& x, Scalar y) { return bitwise_or_(x, y), x; }
inline const Tensor& operator^=(const Tensor& x, Scalar y) { return bitwise_xor_(x, y), x; }

// Elementwise: a bool tensor, no truth value (ask equal(), all() or item()).
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, Scalar b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, Scalar b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, Scalar b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, Scalar b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, Scalar b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, Scalar b) { return ge(a, b); }
inline Tensor operator==(Scalar a, const Tensor& b) { return eq(b, a); }
inline Tensor operator!=(Scalar a, const Tensor& b) { return ne(b, a); }
inline Tensor operator<(Scalar a, const Tensor& b) { return gt(b, a); }
inline Tensor operator<=(Scalar a, const Tensor& b) { return ge(b, a); }
inline Tensor operator>(Scalar a, const Tensor& b) { return lt(b, a); }
inline Tensor operator>=(Scalar a, const Tensor& b) { return le(b, a); }

}  // namespace onestep
