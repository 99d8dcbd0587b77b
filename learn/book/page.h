#pragma once
// What a section of the chapter shows: lines of C++, and what they computed.
//
// RUN and SHOW execute a line and put the same line on the page, so that what a reader sees is the code that ran:
//
//   RUN(Generator generator(123));
//   SHOW(weights, "simple_w_soft", softmax(scores, 0));   // const auto weights = softmax(scores, 0);
#include <optional>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep::book {

/// A line of C++ and its result.
struct Result {
  std::string section;
  std::string note;              ///< what to look at; may be empty
  std::string code;              ///< the line
  std::string text;              ///< the result as PyTorch prints it; empty for a line that only prepares
  Tensor value;                  ///< the result; a shape is int64 [rank], several are [n, rank]; undefined for text
  std::vector<std::string> ids;  ///< the printed results it must agree with
  std::string dialect;           ///< of the dropout masks where they matter, else empty
};

/// Collects the results of one section.
class Page {
 public:
  Page(std::string section, std::vector<RngDialect> dialects, std::vector<Result>& results)
      : section_(std::move(section)), dialects_(std::move(dialects)), results_(&results) {}

  /// The dropout dialects to show.
  const std::vector<RngDialect>& dialects() const { return dialects_; }
  /// Marks the lines that follow as computed with masks of `dialect`, or (without) as free of random masks.
  void set_dialect(std::optional<RngDialect> dialect);

  /// A remark on the next line.
  void note(const std::string& text) { note_ = text; }
  /// A line without a result to show.
  void line(const std::string& code) { add(code, "", "", {}); }
  /// A line and its result; `ids` are separated by spaces.
  void line(const std::string& code, const std::string& ids, const Tensor& value);
  void line(const std::string& code, const std::string& ids, const std::vector<Shape>& shapes);
  void line(const std::string& code, const std::string& ids, const Shape& shape) { line(code, ids, std::vector{shape}); }
  void line(const std::string& code, const std::string& ids, const std::vector<double>& numbers);
  void line(const std::string& code, const std::string& ids, double number);
  void line(const std::string& code, const std::string& ids, int64_t number);
  void line(const std::string& code, const std::string& ids, const std::string& text) { add(code, ids, text, {}); }

 private:
  void add(const std::string& code, const std::string& ids, const std::string& text, const Tensor& value);

  std::string section_, dialect_, note_;
  std::vector<RngDialect> dialects_;
  std::vector<Result>* results_;
};

/// `torch` or `torch-mkl`.
const char* name(RngDialect dialect);

}  // namespace onestep::book

/// Runs a statement and writes it on the page.
#define RUN(...) \
  __VA_ARGS__;   \
  page.line(#__VA_ARGS__ ";")

/// Runs `const auto variable = expression;` and writes the line and the result on the page; `ids` name the printed numbers it
/// must agree with.
#define SHOW(variable, ids, ...)     \
  const auto variable = __VA_ARGS__; \
  page.line("const auto " #variable " = " #__VA_ARGS__ ";", ids, variable)
