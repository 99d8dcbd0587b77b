#pragma once
// Elementary functions in double with the same bits on every machine. Those of the C library differ by an ulp between versions
// and CPUs, and what a float32 training run computes in double (schedules, bias corrections, normal draws) must not. They
// consist of operations that IEEE 754 defines to the bit.
#include <cstdint>

namespace onestep::portable {

/// log(x) to 0.52 ulp, about as fast as C's; -inf for 0, NaN below.
double log(double x);

// To a few ulp at most, about as fast as C's and with C's special values (portable_functions.cpp).

/// log2 is exact for powers of two.
double log2(double x);
double log10(double x);
double log1p(double x);
double exp(double x);
double exp2(double x);
double expm1(double x);
double sinh(double x);
double cosh(double x);
double tanh(double x);
double asinh(double x);
double acosh(double x);
double atanh(double x);
double asin(double x);
double acos(double x);
double atan(double x);
double atan2(double y, double x);
/// sqrt(x^2 + y^2) without overflow.
double hypot(double x, double y);
/// 1 - erf(x)
double erfc(double x);
/// The y with erf(y) = x; NaN outside [-1, 1].
double erfinv(double x);

// With twice the precision of double, rounded once: the nearest double but for about one argument in 10^15; microseconds each.

/// x^n (the pown of IEEE 754) for n >= 0.
double pown(double x, int64_t n);
/// x^y for x >= 0 as C's pow; NaN for x < 0.
double pow(double x, double y);
/// sin(x) and cos(x) for |x| <= 2^20; NaN beyond.
double sin(double x);
double cos(double x);

}  // namespace onestep::portable
