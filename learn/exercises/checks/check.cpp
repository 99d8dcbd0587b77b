#include "learn/exercises/checks/check.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "learn/book/printed.h"
#include "learn/book/sections.h"

namespace exercises {
namespace {

std::vector<Exercise>& registry() {
  static std::vector<Exercise> exercises;
  return exercises;
}

/// `[1, 0]`: the place of the row-major element `i`.
std::string place(const Shape& shape, int64_t i) {
  Shape index = shape;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  std::ostringstream out;
  out << index;
  return out.str();
}

std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

/// NaN agrees with NaN, an infinity with itself.
bool agree(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

/// The first element in which they differ, -1 if they agree.
int64_t first_difference(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!agree(a[i], b[i], tolerance)) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace

void require_close(const Tensor& yours, const Tensor& right, const std::vector<Mistake>& mistakes, double tolerance) {
  require(yours.defined(), "nothing comes back: the result is an undefined tensor");
  const std::vector<double> mine = yours.to_vector<double>(), wanted = right.to_vector<double>();
  if (yours.shape() == right.shape() && first_difference(mine, wanted, tolerance) < 0) return;
  for (const Mistake& mistake : mistakes) {
    if (yours.shape() != mistake.gives.shape()) continue;
    require(first_difference(mine, mistake.gives.to_vector<double>(), tolerance) >= 0, mistake.sentence);
  }
  require(yours.shape() == right.shape(), "the result has the shape ", yours.shape(), " and not ", right.shape());
  const int64_t at = first_difference(mine, wanted, tolerance);
  const auto i = static_cast<size_t>(at);
  require(false, "element ", place(yours.shape(), at), " is ", four_digits(mine[i]), " and not ", four_digits(wanted[i]));
}

void require_printed(const Tensor& yours, const std::string& id, const std::vector<Mistake>& mistakes) {
  for (const onestep::book::Printed& printed : onestep::book::printed()) {
    if (id != printed.id || (*printed.dialect != '\0' && std::string(printed.dialect) != "torch")) continue;
    std::istringstream words(printed.digits);
    std::vector<double> numbers;
    for (double number = 0; words >> number;) numbers.push_back(number);
    require(yours.numel() == static_cast<int64_t>(numbers.size()), "the result has the shape ", yours.shape(),
            ", the book prints ", numbers.size(), " numbers");
    require_close(yours, from_values(numbers, yours.shape()), mistakes, /*tolerance=*/0.6e-4);
    return;
  }
  throw std::logic_error(id + ": the book prints no such result");
}

void require_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
                       const std::vector<std::string>& names) {
  const GradcheckResult result = gradcheck(f, inputs);
  if (result.passed) return;
  require(result.input >= 0, "gradcheck: ", result.message);
  require(result.element >= 0, "the gradient of ", names[static_cast<size_t>(result.input)],
          " is wrong: along a random direction backward() says ", four_digits(result.analytic), ", finite differences say ",
          four_digits(result.numeric));
  const size_t input = static_cast<size_t>(result.input);
  require(false, "the gradient of ", names[input], " is wrong: at ", place(inputs[input].shape(), result.element),
          " backward() says ", four_digits(result.analytic), ", finite differences say ", four_digits(result.numeric));
}

Tensor random_leaf(const Shape& shape, int64_t seed) {
  Generator generator(seed);
  return randn(shape, generator, DType::float64).requires_grad_();
}

Tensor journey() { return onestep::book::journey(); }

Register::Register(Exercise exercise) { registry().push_back(std::move(exercise)); }

std::vector<Exercise> registered_exercises() {
  std::vector<Exercise> exercises = registry();
  std::sort(exercises.begin(), exercises.end(), [](const Exercise& a, const Exercise& b) { return a.name < b.name; });
  return exercises;
}

}  // namespace exercises
