#pragma once
// Draws that take as many uniforms as it needs until one is accepted: PyTorch's, from the same uniforms. T is float or double.
// They call functions that have the same bits on every machine, so that every machine accepts the same.
#include "autograd/random/generator.h"

namespace onestep {

/// y[i] has density x^(alpha - 1) exp(-x) / gamma(alpha) for finite alpha[i] > 0, of a normal's cube (Marsaglia and Tsang
/// 2000); below 1 that for alpha + 1 times u^(1 / alpha). 0 for alpha = 0.
template <class T>
void draw_gamma(const T* alpha, T* y, int64_t n, Generator& g);

/// y[i] is k with probability rate^k exp(-rate) / k!, for finite rate[i] >= 0: by transformed rejection (Hoermann 1993), below
/// 10 by the number of uniforms whose product stays above exp(-rate).
template <class T>
void draw_poisson(const T* rate, T* y, int64_t n, Generator& g);

/// y[i] tells how many of count[i] events happen that have probability p[i] each: by transformed rejection (Hoermann 1993),
/// where fewer than 10 are expected by the distances between them. NaN for a p that is NaN; 0 below and `count` above [0, 1].
template <class T>
void draw_binomial(const T* count, const T* p, T* y, int64_t n, Generator& g);

}  // namespace onestep
