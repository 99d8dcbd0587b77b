/* fmaf with one rounding. The C library's rounds some ties with subnormal results twice. The product of two floats is exact as a
   double; the sum is rounded to odd (Boldo and Melquiond 2008), which no further rounding can spoil. */
#include <stdint.h>
#include <string.h>

float fmaf(float x, float y, float z) {
  const double product = (double)x * (double)y, addend = z, sum = product + addend;
  const double part = sum - product, error = (product - (sum - part)) + (addend - part);
  if (!(error < 0 || error > 0)) return (float)sum; /* exact, infinite or NaN */
  int64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if ((error < 0) != (sum < 0)) --bits; /* |sum| was rounded up: take the double below */
  bits |= 1;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return (float)odd;
}
