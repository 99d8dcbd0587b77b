#include "web/engine/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace onestep::web {
namespace {

constexpr int kMaxDepth = 50;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Recursive descent, one function a level of precedence.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Statement> program() {
    std::vector<Statement> statements;
    for (skip_separators(); at_ < text_.size(); skip_separators()) {
      statements.push_back(statement());
      skip_blanks();
      if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ';') refuse("expected an operator or the end of the line");
    }
    return statements;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { refuse_at(at_, what); }
  [[noreturn]] void refuse_at(size_t at, const std::string& what) const {
    const size_t length = std::max<size_t>(1, utf8_length(text_, at));
    const std::string found = at < text_.size() && text_[at] != '\n' ? quote(text_.substr(at, length)) : "the end of the line";
    fail<ConfigError>("expression: ", place_in(text_, at), ": ", what, ", found ", found);
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || (open_ && text_[at_] == '\n')))
      ++at_;
    if (at_ < text_.size() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void skip_separators() {
    for (skip_blanks(); at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == ';'); skip_blanks()) ++at_;
  }
  /// Whether `symbol` comes next; takes it then.
  bool take(std::string_view symbol) {
    skip_blanks();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) refuse("expected " + std::string(symbol));
  }
  bool next_is(std::string_view symbol) {
    skip_blanks();
    return text_.substr(at_, symbol.size()) == symbol;
  }

  Statement statement() {
    const size_t begin = at_;
    Expression first = sum();
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kUpdates{
        {{"+=", "add_"}, {"-=", "sub_"}, {"*=", "mul_"}, {"/=", "div_"}}};
    for (const auto& [symbol, op] : kUpdates) {
      if (!take(symbol)) continue;
      check_target(first, true);
      Expression value = sum();
      return {Statement::Kind::update, {begin, value.span.end}, std::move(first), std::string(op), std::move(value)};
    }
    if (!take("=")) {
      const Span span = first.span;
      return {Statement::Kind::evaluate, span, {}, "", std::move(first)};
    }
    check_target(first, true);
    Expression value = sum();
    const bool element = first.kind == Expression::Kind::index;
    return {element ? Statement::Kind::update : Statement::Kind::assign,
            {begin, value.span.end},
            std::move(first),
            element ? "copy_" : "",
            std::move(value)};
  }
  void check_target(const Expression& target, bool indexed) const {
    const bool fits = target.kind == Expression::Kind::name ||
                      (indexed && target.kind == Expression::Kind::index && target.parts[0].kind == Expression::Kind::name);
    if (!fits) refuse_at(target.span.begin, "only a name or an element of one can be on the left of =");
  }

  static Expression call(std::string name, Span span, std::vector<Expression> parts) {
    return {Expression::Kind::call, span, 0, std::move(name), std::move(parts)};
  }
  static Expression binary(const char* name, Expression left, Expression right) {
    const Span span{left.span.begin, right.span.end};
    std::vector<Expression> parts;
    parts.push_back(std::move(left));
    parts.push_back(std::move(right));
    return call(name, span, std::move(parts));
  }

  /// Whether `symbol` is next as an operator of its own: `*` but neither `**` nor `*=`.
  bool take_operator(char symbol) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != symbol) return false;
    const char after = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (after == '=' || (symbol == '*' && after == '*')) return false;
    ++at_;
    return true;
  }

  Expression sum() {
    if (++depth_ > kMaxDepth) refuse("brackets are nested too deeply");
    Expression left = term();
    while (true) {
      if (take_operator('+'))
        left = binary("add", std::move(left), term());
      else if (take_operator('-'))
        left = binary("sub", std::move(left), term());
      else
        break;
    }
    --depth_;
    return left;
  }
  Expression term() {
    Expression left = factor();
    while (true) {
      if (take_operator('*'))
        left = binary("mul", std::move(left), factor());
      else if (take_operator('/'))
        left = binary("div", std::move(left), factor());
      else if (take_operator('@'))
        left = binary("matmul", std::move(left), factor());
      else
        return left;
    }
  }
  Expression factor() {
    skip_blanks();
    const size_t begin = at_;
    if (!take("-")) return power();
    if (++depth_ > kMaxDepth) refuse("brackets are nested too deeply");
    Expression inner = factor();
    --depth_;
    const Span span{begin, inner.span.end};
    if (inner.kind == Expression::Kind::number) return {Expression::Kind::number, span, -inner.number};
    std::vector<Expression> parts;
    parts.push_back(std::move(inner));
    return call("neg", span, std::move(parts));
  }
  Expression power() {
    Expression base = suffixed();
    if (take("**") || take("^")) return binary("pow", std::move(base), factor());
    return base;
  }

  /// What follows a value: [indices], .method(arguments), .T.
  Expression suffixed() {
    Expression value = primary();
    while (true) {
      if (take("[")) {
        std::vector<Expression> parts;
        parts.push_back(std::move(value));
        const size_t begin = parts[0].span.begin;
        list_until("]", parts);
        value = {Expression::Kind::index, {begin, at_}, 0, "", std::move(parts)};
      } else if (take(".")) {
        std::string method = name();
        const size_t begin = value.span.begin;
        std::vector<Expression> parts;
        parts.push_back(std::move(value));
        if (method == "T") {
          method = "t";
        } else {
          expect("(");
          list_until(")", parts);
        }
        value = call(std::move(method), {begin, at_}, std::move(parts));
      } else {
        return value;
      }
    }
  }

  std::string name() {
    skip_blanks();
    const size_t begin = at_;
    if (at_ >= text_.size() || !begins_name(text_[at_])) refuse("expected a name");
    while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// Expressions separated by commas, to `close`. In brackets, lines may end anywhere; `dim=` may come before an argument.
  void list_until(std::string_view close, std::vector<Expression>& parts) {
    ++open_;
    while (!next_is(close)) {
      if (const size_t before = at_; take("dim") && !take("=")) at_ = before;
      parts.push_back(sum());
      if (!next_is(close)) expect(",");
    }
    --open_;
    expect(close);
  }

  Expression number() {
    const size_t begin = at_;
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) refuse("not a number that a double can hold");
    at_ = static_cast<size_t>(end - text_.data());
    return {Expression::Kind::number, {begin, at_}, value};
  }

  Expression primary() {
    skip_blanks();
    const size_t begin = at_;
    if (at_ < text_.size() &&
        (is_digit(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))))
      return number();
    if (take("[")) {
      std::vector<Expression> parts;
      list_until("]", parts);
      return {Expression::Kind::list, {begin, at_}, 0, "", std::move(parts)};
    }
    if (take("(")) {
      ++open_;
      Expression inner = sum();
      skip_blanks();
      --open_;
      expect(")");
      inner.span = {begin, at_};
      return inner;
    }
    if (at_ >= text_.size() || !begins_name(text_[at_])) refuse("expected a number, a name or a bracket");
    std::string word = name();
    if (!take("(")) return {Expression::Kind::name, {begin, begin + word.size()}, 0, std::move(word)};
    std::vector<Expression> parts;
    list_until(")", parts);
    return call(std::move(word), {begin, at_}, std::move(parts));
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0, open_ = 0;
};

}  // namespace

bool Expression::is_literal() const {
  return kind == Kind::number || (kind == Kind::list && std::all_of(parts.begin(), parts.end(),
                                                                    [](const Expression& part) { return part.is_literal(); }));
}

std::vector<Statement> parse_program(std::string_view text) { return Parser(text).program(); }

std::string place_in(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(at - start + 1);
}

}  // namespace onestep::web
