#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

namespace onestep::nn {

/// A string literal as a template argument: the name of a module that is a function.
template <size_t N>
struct Literal {
  consteval Literal(const char (&from)[N]) { std::copy_n(from, N, text); }
  std::string string() const { return text; }
  char text[N];
};

}  // namespace onestep::nn
