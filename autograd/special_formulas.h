#pragma once
// Functions of torch.special as formulas (portable_formulas.h): of double, from which float results are rounded once.
// Polynomials and quotients of polynomials have the least worst relative error there is.
#include <array>
#include <cmath>
#include <limits>

#include "autograd/portable_formulas.h"

// NOLINTBEGIN(bugprone-narrowing-conversions)
namespace onestep::portable::formulas {

/// -x log(x); 0 for 0, -inf below.
ONESTEP_FORMULA double entr(double x) {
  const double positive = x < std::numeric_limits<double>::denorm_min() ? 1 : x, y = 0 - positive * quick_log(positive);
  return x < 0 ? -kInfinity : y;
}

/// exp(factor x^2) for a factor of 1 or -1/2, with the digits of x^2 that do not fit a double.
ONESTEP_FORMULA double exp_of_square(double x, double factor) {
  const double near = limited(x, 40), scaled = factor * near, square = scaled * near;  // beyond it is infinite or 0
  return exp(square) * (1 + std::fma(scaled, near, -square));
}

/// exp(a^2) erfc(a) for a >= 0: 1 / (1 + a) times a quotient of polynomials of that, whose terms are all positive.
ONESTEP_FORMULA double erfcx_of_positive(double a) {
  constexpr std::array above = {0x1.20dd750429b6dp-1, 0x1.83d6445f81175p+2,  0x1.42f1a4954443bp+5,  0x1.735e7aa152245p+7,
                                0x1.4165521aabebap+9, 0x1.acbc29a705785p+10, 0x1.bccf30cc186fcp+11, 0x1.63287a0cdb204p+12,
                                0x1.a63c2dec51cdp+12, 0x1.58b19ad5afd7bp+12, 0x1.325a073afd30cp+11};
  constexpr std::array below = {0x1.0p+0,
                                0x1.37b629c886414p+3,
                                0x1.ea79ad098f7d3p+5,
                                0x1.076ff668c21c6p+8,
                                0x1.a9ac64b911ea5p+9,
                                0x1.06755c5d8d79cp+11,
                                0x1.f2b9d170b9d0fp+11,
                                0x1.68b0d1cb0cd12p+12,
                                0x1.827038f4f7487p+12,
                                0x1.22397595a5709p+12,
                                0x1.11badab4a84aep+11,
                                0x1.e948816ac75dcp+8};
  const double u = 1 / (1 + a);
  return u * fused_polynomial(u, above) / fused_polynomial(u, below);
}

/// exp(x^2) erfc(x)
ONESTEP_FORMULA double erfcx(double x) {
  const double y = erfcx_of_positive(std::fabs(x)), below = 2 * exp_of_square(x, 1) - y;
  return x < 0 ? below : y;
}

/// The part of the standard normal distribution above |x|.
ONESTEP_FORMULA double normal_tail(double x) {
  return 0.5 * exp_of_square(x, -0.5) * erfcx_of_positive(kRootHalf * std::fabs(x));
}
/// The part of it below x.
ONESTEP_FORMULA double ndtr(double x) {
  const double tail = normal_tail(x);
  return x < 0 ? tail : 1 - tail;
}

/// log(ndtr(x)): below 0 log(erfcx(a) / 2) - a^2 with a = -x / sqrt(2), so that it has all digits far below.
ONESTEP_FORMULA double log_ndtr(double x) {
  const double scaled = erfcx_of_positive(kRootHalf * std::fabs(x));
  const double y = log1p_or_log(-normal_tail(x), x < 0, 0.25 * scaled), below = y - 0.5 * x * x;
  return x < 0 ? below : y;
}

/// The x with ndtr(x) = p; NaN outside [0, 1]. Near 1/2 it is p - 1/2 times a quotient, elsewhere one of sqrt(-log(p)).
ONESTEP_FORMULA double ndtri(double p) {
  constexpr std::array above = {0x1.b18d91e9eef75p+1,  0x1.0a456708481a5p+7,  0x1.ecd91298cd1c8p+10, 0x1.ad0b2b4222356p+13,
                                0x1.66ad3b3403f22p+15, 0x1.06aace7688863p+16, 0x1.050efa12ff352p+15, 0x1.39745f79cc975p+11};
  constexpr std::array below = {0x1.0p+0,
                                0x1.527e00d01652fp+5,
                                0x1.578fb70609de7p+9,
                                0x1.5115d4da2ccf9p+12,
                                0x1.4b63f44b1816ap+14,
                                0x1.32ff4174855f6p+15,
                                0x1.c0b51157a3f92p+14,
                                0x1.467c29468fb5cp+12};
  constexpr std::array tail_above = {-0x1.cb215032ee01ep+1, -0x1.43ab456b148a7p+5, -0x1.22693d211ec1bp+6, 0x1.b041a14efa1aep+3,
                                     0x1.59803616189a1p+6,  0x1.111dd2590f5ccp+6,  0x1.bac8431fee636p+4,  0x1.780a33919897bp+2,
                                     0x1.33574e106e851p-1,  0x1.bcdbc303d07f5p-6,  0x1.f3fbb33cce62ep-12, 0x1.3be22a88b3f3p-19};
  constexpr std::array tail_below = {0x1.0p+0,
                                     0x1.2421cab518c7bp+4,
                                     0x1.0cf7840255e94p+6,
                                     0x1.5d7405d2ceed3p+6,
                                     0x1.b804556920921p+5,
                                     0x1.468782181d1acp+4,
                                     0x1.0cda9ed5e516ep+2,
                                     0x1.b3a82e55b67cp-2,
                                     0x1.3aaa087cf47cfp-6,
                                     0x1.618b3165dd31p-12,
                                     0x1.beb9e28226016p-20};
  const double q = p - 0.5, lower = p < 0.5 ? p : 1 - p, s = 0.425 * 0.425 - q * q, r = std::sqrt(-quick_log(lower));
  const double near = q * (fused_polynomial(s, above) / fused_polynomial(s, below));
  const double far = lower == 0 ? kInfinity : fused_polynomial(r, tail_above) / fused_polynomial(r, tail_below);
  return std::fabs(q) < 0.425 ? near : std::copysign(far, q);
}

/// Polynomials for the modified Bessel functions of the first kind, of order 0 and 1: of x^2 for |x| < 10, to I(0, x) or I(1,
/// x) / x, and beyond of 1 / |x|, to I(n, x) exp(-|x|) sqrt(|x|).
template <class T>
struct Bessel {
  static constexpr std::array<std::array<double, 17>, 2> near = {
      {{0x1.0p+0, 0x1.ffffffffffffcp-3, 0x1.000000000002ep-6, 0x1.c71c71c71c04p-12, 0x1.c71c71c7249c2p-18, 0x1.2345678951d7p-24,
        0x1.02e85c0d8097dp-31, 0x1.522a439a51c03p-39, 0x1.522a48abd49a4p-47, 0x1.0b3106529b09fp-55, 0x1.5603e48c45045p-64,
        0x1.69b3017fe85cap-73, 0x1.4243eb8f87d35p-82, 0x1.e016b6efd9947p-92, 0x1.57e2dcdf060c8p-101, 0x1.de88e1ab7819fp-112,
        0x1.5b03b1e7c8e86p-120},
       {0x1.0p-1, 0x1.fffffffffffffp-5, 0x1.555555555556cp-9, 0x1.c71c71c71c41cp-15, 0x1.6c16c16c19fap-21,
        0x1.845c8a0ca4185p-28, 0x1.27e4fb7ad2cd3p-35, 0x1.522a43bca44a4p-43, 0x1.2c975ba4ab745p-51, 0x1.ab81b8add63bap-60,
        0x1.f1792264c293fp-69, 0x1.e24b0d3155582p-78, 0x1.8c7a6f3115c71p-87, 0x1.12f436e6fd6ebp-96, 0x1.6b92609c75854p-106,
        0x1.f2c380f87bd47p-117, 0x1.3f7edde8bc87cp-125}}};
  static constexpr std::array<std::array<double, 21>, 2> far = {
      {{0x1.9884533d43651p-2,   0x1.9884533d4361p-5,    0x1.cb94dda67865fp-6,   0x1.debb0c463911dp-6,   0x1.6e8b1f92b5728p-5,
        0x1.71784771fe0d5p-4,   0x1.2298d186e2474p-2,   -0x1.25db40643830fp+2,  0x1.6d42f110d0c28p+8,   -0x1.2118230a1786fp+14,
        0x1.5d51301ebab3p+19,   -0x1.437ced9005a24p+24, 0x1.ce72063de09bdp+28,  -0x1.fe9709899e1aep+32, 0x1.b13827a2c77abp+36,
        -0x1.1725bb61be6aep+40, 0x1.0b950a4c4e616p+43,  -0x1.70abf10e095cbp+45, 0x1.5841e4000582ap+47,  -0x1.8587935c375eep+48,
        0x1.92d29c07cc416p+48},
       {0x1.9884533d43651p-2,   -0x1.32633e6df286bp-3,  -0x1.7efc0e0a8b1ffp-5, -0x1.4f1c88f4c320ap-5,  -0x1.d744ceb4488a8p-5,
        -0x1.c3ad8de4bb88ap-4,  -0x1.54c9988cf00b9p-2,  0x1.4706ea75ffeabp+2,  -0x1.93d457dda13f5p+8,  0x1.3ca31b236f449p+14,
        -0x1.7bb8cfead55eep+19, 0x1.5d6abfc2667d6p+24,  -0x1.f0cd125e125dp+28, 0x1.10f736dc83ba8p+33,  -0x1.cd46e2c96ce7fp+36,
        0x1.281faae7242efp+40,  -0x1.1ae86400e1524p+43, 0x1.849b6f3a72816p+45, -0x1.69dea5cf38a21p+47, 0x1.986b40c05be6p+48,
        -0x1.a55e4ac98d054p+48}}};
};
/// The same to what a float needs.
template <>
struct Bessel<float> {
  static constexpr std::array<std::array<double, 13>, 2> near = {
      {{0x1.0000000019562p+0, 0x1.fffffffa4f1p-3, 0x1.0000002fdc57ap-6, 0x1.c71c6d4c552bdp-12, 0x1.c71ca5488ef31p-18,
        0x1.23441d58e8d05p-24, 0x1.02f269e17183fp-31, 0x1.51c5f879e7dfdp-39, 0x1.54bbea5bf26a4p-47, 0x1.000d0b2f34ccap-55,
        0x1.94d397002ec43p-64, 0x1.1f36cec49814bp-74, 0x1.6c22e32eb8c17p-81},
       {0x1.0000000005867p-1, 0x1.fffffffe01809p-5, 0x1.5555557186a25p-9, 0x1.c71c6f7c0ep-15, 0x1.6c16d8ed7a67ep-21,
        0x1.845b780663d4ap-28, 0x1.27ecafeba81e1p-35, 0x1.51e269de707d2p-43, 0x1.2e542f4a6ededp-51, 0x1.9d290a18a5d8ap-60,
        0x1.1f80c7e63f9e9p-68, 0x1.bd3c87a6743e7p-79, 0x1.b10692859bfbbp-86}}};
  static constexpr std::array<std::array<double, 7>, 2> far = {
      {{0x1.9884533e961a4p-2, 0x1.98842deb0766ap-5, 0x1.cbbfa19d0bb8cp-6, 0x1.d5ab63df0cc66p-6, 0x1.e03d32dd09829p-5,
        -0x1.3eb196d02d6cfp-4, 0x1.186b97e4837aap+0},
       {0x1.9884533bc0ebfp-2, -0x1.326333d883965p-3, -0x1.7f143533b1048p-5, -0x1.4a024dab80a45p-5, -0x1.2b8b07c89569ap-4,
        0x1.4195e5628c3b2p-4, -0x1.3f1085f5eb118p+0}}};
};

/// I(ORDER, x), times exp(-|x|) where SCALED, for a result of type T.
template <int ORDER, bool SCALED, class T>
ONESTEP_FORMULA T bessel(T argument) {
  const double x = argument, a = SCALED ? std::fabs(x) : limited(std::fabs(x), 800);  // beyond it is infinite
  const double e = exp(SCALED ? -a : 0.5 * a);  // whose square may be infinite where the product is not
  const double series = fused_polynomial(a * a, Bessel<T>::near[ORDER]), small = ORDER == 0 ? series : a * series;
  const double root = 1 / std::sqrt(a), large = root * fused_polynomial(root * root, Bessel<T>::far[ORDER]);
  const double y = a < 10 ? (SCALED ? e * small : small) : (SCALED ? large : e * large * e);
  return static_cast<T>(ORDER == 0 ? y : std::copysign(y, x));
}
template <class T>
ONESTEP_FORMULA T i0(T x) {
  return bessel<0, false>(x);
}
template <class T>
ONESTEP_FORMULA T i0e(T x) {
  return bessel<0, true>(x);
}
template <class T>
ONESTEP_FORMULA T i1(T x) {
  return bessel<1, false>(x);
}
template <class T>
ONESTEP_FORMULA T i1e(T x) {
  return bessel<1, true>(x);
}

}  // namespace onestep::portable::formulas
// NOLINTEND(bugprone-narrowing-conversions)
