#pragma once
// Names of ops that are declared three times in the same way: for those in these lists there are, beside the function op(x),
// the method x.op() and the in-place forms op_(x) and x.op_().

// clang-format off
#define ONESTEP_UNARY_OPS(OP) \
  OP(abs) OP(neg) OP(exp) OP(log) OP(sqrt) OP(rsqrt) OP(sin) OP(cos) OP(tanh) OP(sigmoid) OP(relu) \
  OP(exp2) OP(expm1) OP(log1p) OP(log2) OP(log10) OP(tan) OP(asin) OP(acos) OP(atan) OP(sinh) OP(cosh) \
  OP(asinh) OP(acosh) OP(atanh) OP(erf) OP(erfc) OP(erfinv) OP(lgamma) OP(digamma) OP(sinc) OP(reciprocal) \
  OP(square) OP(deg2rad) OP(rad2deg) OP(floor) OP(ceil) OP(trunc) OP(round) OP(frac) OP(sign) OP(sgn) OP(bitwise_not) OP(logical_not)
/// op(x, y) with a tensor.
#define ONESTEP_BINARY_OPS(OP) \
  OP(atan2) OP(hypot) OP(heaviside) OP(logical_and) OP(logical_or) OP(logical_xor)
/// op(x, y) with a tensor or a number.
#define ONESTEP_SCALAR_OPS(OP) \
  OP(pow) OP(xlogy) OP(float_power) OP(remainder) OP(fmod) OP(floor_divide) OP(clamp_min) OP(clamp_max) \
  OP(bitwise_and) OP(bitwise_or) OP(bitwise_xor) OP(bitwise_left_shift) OP(bitwise_right_shift)
// clang-format on
