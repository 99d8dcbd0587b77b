#include "learn/book/page.h"

#include <sstream>
#include <utility>

#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "nn/module.h"

namespace onestep::book {

const char* name(RngDialect dialect) { return dialect == RngDialect::torch ? "torch" : "torch-mkl"; }

void Page::set_dialect(std::optional<RngDialect> dialect) { dialect_ = dialect ? name(*dialect) : ""; }

void Page::line(const std::string& code, const std::string& ids, const Tensor& value) {
  add(code, ids, to_string(value), value.detach().clone());  // a later line may write to it
}

void Page::line(const std::string& code, const std::string& ids, const std::vector<Shape>& shapes) {
  std::ostringstream text;
  std::vector<int64_t> sizes;
  for (const Shape& shape : shapes) {
    text << (text.tellp() > 0 ? ", " : "") << "torch.Size(" << shape << ")";
    sizes.insert(sizes.end(), shape.begin(), shape.end());
  }
  const int64_t count = std::ssize(shapes), rank = shapes.front().rank();
  add(code, ids, text.str(), from_values(sizes, count == 1 ? Shape{rank} : Shape{count, rank}));
}

void Page::line(const std::string& code, const std::string& ids, const std::vector<double>& numbers) {
  std::string text;
  for (double number : numbers) text += (text.empty() ? "[" : ", ") + nn::python_repr(number);
  add(code, ids, text + "]", from_values(numbers, Shape(std::ssize(numbers))));
}

void Page::line(const std::string& code, const std::string& ids, double number) {
  add(code, ids, nn::python_repr(number), tensor(number, DType::float64));
}

void Page::line(const std::string& code, const std::string& ids, int64_t number) {
  add(code, ids, std::to_string(number), tensor(number));
}

void Page::add(const std::string& code, const std::string& ids, const std::string& text, const Tensor& value) {
  Result result{section_, std::exchange(note_, ""), code, text, value, {}, dialect_};
  // Where the source has a line break or a comment after a bracket, the macros leave a space.
  for (size_t at = 0; (at = result.code.find("( ", at)) != std::string::npos;) result.code.erase(at + 1, 1);
  std::istringstream words(ids);
  for (std::string id; words >> id;) result.ids.push_back(id);
  results_->push_back(result);
}

}  // namespace onestep::book
