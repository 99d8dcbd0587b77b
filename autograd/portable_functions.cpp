// The formulas as functions.
#include "autograd/portable_formulas.h"
#include "autograd/portable_math.h"

namespace onestep::portable {

double log(double x) { return formulas::log(x); }
double log2(double x) { return formulas::log2(x); }
double log10(double x) { return formulas::log10(x); }
double log1p(double x) { return formulas::log1p(x); }
double exp(double x) { return formulas::exp(x); }
double exp2(double x) { return formulas::exp2(x); }
double expm1(double x) { return formulas::expm1(x); }
double sinh(double x) { return formulas::sinh(x); }
double cosh(double x) { return formulas::cosh(x); }
double tanh(double x) { return formulas::tanh(x); }
double asinh(double x) { return formulas::asinh(x); }
double acosh(double x) { return formulas::acosh(x); }
double atanh(double x) { return formulas::atanh(x); }
double asin(double x) { return formulas::asin(x); }
double acos(double x) { return formulas::acos(x); }
double atan(double x) { return formulas::atan(x); }
double atan2(double y, double x) { return formulas::atan2(y, x); }
double hypot(double x, double y) { return formulas::hypot(x, y); }
double erfc(double x) { return formulas::erfc(x); }
double erfinv(double x) { return formulas::erfinv(x); }

}  // namespace onestep::portable
