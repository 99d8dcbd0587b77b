#pragma once
// The numbers that the book's chapter and its notebooks print.
#include <span>

namespace onestep::book {

/// One printed result, or the right one where the printed one is wrong (`corrected_...`).
struct Printed {
  const char* id;
  const char* dialect;  ///< "torch" or "torch-mkl" where the numbers depend on a dropout mask, else empty
  const char* digits;   ///< row-major, each number with its printed digits; "..." at the end where the text breaks off
};

/// All of them, each id once a dialect.
std::span<const Printed> printed();

}  // namespace onestep::book
