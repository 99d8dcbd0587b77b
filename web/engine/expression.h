#pragma once
// Small programs in ordinary notation, as people type them into the page: read into trees.
//
//   x = [0.5, -1.2]; w = [0.3, 0.8]; b = 0.1
//   y = tanh(w @ x + b)
//   y *= 2
//   (y - 1)^2
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace onestep::web {

/// Where something is in the text, in bytes.
struct Span {
  size_t begin = 0, end = 0;
};

struct Expression {
  enum class Kind { number, list, name, call, index };
  Kind kind;
  Span span;
  double number = 0;
  std::string name = {};  ///< Of a name or of the function that is called; operators call add, sub, mul, div, pow, matmul, neg.
  std::vector<Expression> parts = {};  ///< Elements of a list, arguments of a call, what is indexed and its indices.

  /// A number or a list of literals.
  bool is_literal() const;
};

struct Statement {
  enum class Kind { assign, update, evaluate };
  Kind kind;
  Span span;
  Expression target;  ///< A name, or for an update also an indexed one; unused where an expression is evaluated.
  std::string op;     ///< Of an update: add_, sub_, mul_, div_, or copy_ where an element is assigned.
  Expression value;
};

/// The statements of a program, separated by line ends or semicolons; # begins a comment. `**` and `^` are powers, `@` is the
/// matrix product, `x.f(y)` is `f(x, y)`, `x.T` its transpose. Throws ConfigError with line and column.
std::vector<Statement> parse_program(std::string_view text);

/// `line 2, column 5` of the byte `at`, for people.
std::string place_in(std::string_view text, size_t at);

}  // namespace onestep::web
