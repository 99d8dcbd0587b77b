#include "autograd/testing/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>
#include <utility>

#include "autograd/creation.h"
#include "autograd/grad.h"
#include "autograd/grad_mode.h"
#include "autograd/memory.h"
#include "autograd/operators.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;
using Vector = std::vector<double, memory::Allocator<double>>;  // many come and go: out of the cache of blocks

Vector elements(const Tensor& x) {
  const Tensor rows = x.detach().contiguous();
  const auto* const first = rows.data<double>();
  return {first, first + rows.numel()};
}

double largest(const Vector& values) {
  double result = 0;
  for (double v : values) result = std::max(result, std::abs(v));
  return result;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Equal values, where NaN equals NaN.
bool same(const Vector& a, const Vector& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return x == y || (x != x && y != y); });
}

/// One run of the check.
class Checker {
 public:
  Checker(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options)
      : f_(f), options_(options), random_(static_cast<uint64_t>(options.seed)) {
    for (const Tensor& input : inputs) {
      const Tensor values = input.detach();
      leaves_.push_back(input.requires_grad() ? values.clone().requires_grad_() : values);
      points_.push_back(input.requires_grad() ? values.clone() : values);
    }
  }

  GradcheckResult run() {
    output_ = f_(leaves_);
    ONESTEP_CHECK(DTypeError, output_.dtype() == DType::float64, "gradcheck: f returned ", output_.dtype(),
                  " (finite differences need float64)");
    values_ = elements(output_);
    largest_value_ = largest(values_);
    if (!same(evaluate(), values_)) return failed("f gave different values for the same inputs (does it draw random numbers?)");
    if (!backward_repeats()) return failed("backward() gave different gradients for the same inputs");
    for (size_t i = 0; i < leaves_.size(); ++i)
      if (leaves_[i].requires_grad()) check_input(i);
    return result_;
  }

 private:
  GradcheckResult failed(std::string why) {
    result_.passed = false;
    result_.worst_error = std::numeric_limits<double>::infinity();
    result_.message = "gradcheck: " + std::move(why);
    return result_;
  }

  Vector evaluate() const {
    const NoGradGuard no_grad;
    return elements(f_(points_));
  }

  /// d(weights . f)/d(input i) by backward(); zero for inputs that the result does not depend on.
  std::vector<Vector> gradients(const Vector& weights, const ListView<Tensor>& inputs = {}) {
    for (Tensor& leaf : leaves_) leaf.zero_grad();
    if (output_.requires_grad())
      output_.backward(from_values(std::span<const double>(weights), output_.shape()), /*retain_graph=*/true, false, inputs);
    std::vector<Vector> all;
    for (const Tensor& leaf : leaves_) {
      const Tensor grad = leaf.grad();
      all.push_back(grad.defined() ? elements(grad) : Vector(static_cast<size_t>(leaf.numel())));
    }
    return all;
  }

  bool backward_repeats() {
    const Vector weights = random_vector(values_.size());
    const std::vector<Vector> first = gradients(weights), second = gradients(weights);
    return std::equal(first.begin(), first.end(), second.begin(), same);
  }

  /// df/dt along x_i + t * direction at t = 0, for every output, by the formula in the header.
  Vector differences(size_t i, const Vector& start, const Vector& direction, double h) {
    const auto move = [&](double t) {
      auto* x = points_[i].mutable_data<double>();
      for (size_t k = 0; k < start.size(); ++k) x[k] = start[k] + t * direction[k];
    };
    const auto at = [&](double t) {
      move(t);
      Vector y = evaluate();
      ONESTEP_CHECK(ShapeError, y.size() == values_.size(), "gradcheck: f returned ", values_.size(), " elements, then ",
                    y.size());
      return y;
    };
    const Vector plus = at(h), minus = at(-h), plus2 = at(2 * h), minus2 = at(-2 * h);
    move(0);
    Vector derivative(values_.size());
    for (size_t j = 0; j < derivative.size(); ++j)
      derivative[j] = (8 * (plus[j] - minus[j]) - (plus2[j] - minus2[j])) / (12 * h);
    return derivative;
  }

  void check_input(size_t i) {
    const auto count = static_cast<int64_t>(values_.size()) * leaves_[i].numel();
    if (count == 0) return;
    if (!std::all_of(values_.begin(), values_.end(), [](double v) { return std::isfinite(v); })) {
      failed("f is not finite at these inputs");
      return;
    }
    if (count <= options_.full_jacobian && leaves_[i].numel() <= options_.full_jacobian / 4)
      check_jacobian(i);
    else
      check_directions(i);
  }

  void check_jacobian(size_t i) {
    const Vector start = elements(leaves_[i]);
    std::vector<Vector> columns;  // columns[k][j] = d f_j / d x_k
    double scale = 1e-5 * largest_value_;
    Vector direction(start.size());
    for (size_t k = 0; k < start.size(); ++k) {
      direction[k] = 1;
      columns.push_back(differences(i, start, direction, step(start[k])));
      direction[k] = 0;
      scale = std::max(scale, largest(columns.back()));
    }
    if (rows_.empty()) rows_ = rows();
    for (size_t j = 0; j < values_.size(); ++j)
      for (size_t k = 0; k < start.size(); ++k)
        compare({static_cast<int64_t>(i), static_cast<int64_t>(k), static_cast<int64_t>(j)}, rows_[j][i][k], columns[k][j],
                scale);
  }

  /// The gradients of each output, of all inputs at once.
  std::vector<std::vector<Vector>> rows() {
    std::vector<std::vector<Vector>> all;
    Vector weights(values_.size());
    for (double& weight : weights) {
      weight = 1;
      all.push_back(gradients(weights));
      weight = 0;
    }
    return all;
  }

  void check_directions(size_t i) {
    const Vector start = elements(leaves_[i]);
    for (int k = 0; k < options_.directions; ++k) {
      const Vector weights = random_vector(values_.size()), direction = random_vector(start.size());
      const Vector gradient = gradients(weights, {leaves_[i]})[i];
      double derivative = 0, squares = 0;  // the sum and, were the signs of its terms random, its size
      for (size_t e = 0; e < gradient.size(); ++e) {
        derivative += gradient[e] * direction[e];
        squares += gradient[e] * direction[e] * gradient[e] * direction[e];
      }
      const double scale = std::max(std::sqrt(squares), 1e-5 * largest_value_);
      const Vector numeric = differences(i, start, direction, step(largest(start)));
      compare({static_cast<int64_t>(i), -1, -1}, derivative, dot(weights, numeric), scale);
    }
  }

  struct Place {
    int64_t input, element, output;
  };

  void compare(const Place& place, double analytic, double numeric, double scale) {
    const double difference = std::abs(analytic - numeric);
    double error = difference == 0 ? 0 : difference / std::max({std::abs(analytic), std::abs(numeric), scale});
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (++result_.derivatives > 1 && error <= result_.worst_error) return;
    result_.worst_error = error;
    result_.input = place.input;
    result_.element = place.element;
    result_.output = place.output;
    result_.analytic = analytic;
    result_.numeric = numeric;
    if (error <= options_.tolerance) return;
    std::ostringstream why;
    why.precision(12);
    why << "input " << place.input;
    if (place.element >= 0)
      why << ", element " << place.element << ", output " << place.output;
    else
      why << ", a random direction";
    why << ": backward() gives " << analytic << ", finite differences " << numeric << " (relative error " << error << ")";
    failed(why.str());
    result_.worst_error = error;
  }

  /// A power of two, so that x + h is exact for most x.
  double step(double x) const { return options_.step * std::exp2(std::max(0, std::ilogb(std::max(std::abs(x), 1.0)))); }

  /// Uniform in [-1, 1): SplitMix64 (Steele, Lea and Flood 2014), since large inputs take many.
  Vector random_vector(size_t n) {
    Vector values(n);
    for (double& v : values) {
      uint64_t z = random_ += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      v = static_cast<double>(static_cast<int64_t>(z ^ (z >> 31))) * 0x1p-63;
    }
    return values;
  }

  const Function& f_;
  const GradcheckOptions options_;
  uint64_t random_;
  std::vector<Tensor> leaves_;  // what backward() sees
  std::vector<Tensor> points_;  // what the finite differences move
  Tensor output_;
  Vector values_;
  std::vector<std::vector<Vector>> rows_;  // d f_j / d x_i,k by backward() at [j][i][k], once an input has needed them
  double largest_value_ = 0;
  GradcheckResult result_;
};

/// The gradient of sum(f(x) * weights) with respect to the x that require grad in `inputs`, one after the other: [N]
class Gradient {
 public:
  Gradient(const Function& f, const std::vector<Tensor>& inputs) : f_(f), inputs_(inputs) {}

  /// `in`: x, then the weights.
  Tensor operator()(const std::vector<Tensor>& in) {
    const bool record = grad_enabled();  // not for finite differences, which want the same bits alone
    const EnableGradGuard forward;
    if (record || !is_at(in)) evaluate(in);
    std::vector<Tensor> grads;
    if (y_.requires_grad())
      grads = autograd::grad({y_}, wanted_, {in.back()},
                             {.retain_graph = true, .create_graph = record, .materialize_grads = true, .recordable = true});
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!y_.requires_grad()) grads.push_back(zeros_like(wanted_[i]));
      grads[i] = reshape(grads[i], {wanted_[i].numel()});
    }
    return cat(grads);
  }

 private:
  /// Whether f has been evaluated there: finite differences along the weights leave x as it is.
  bool is_at(const std::vector<Tensor>& in) const {
    if (at_.empty()) return false;
    for (size_t i = 0; i < at_.size(); ++i)
      if (!at_[i].shares_storage(in[i]) || in[i].version() != versions_[i]) return false;
    return true;
  }

  void evaluate(const std::vector<Tensor>& in) {
    at_.assign(in.begin(), in.end() - 1);
    std::vector<Tensor> x = at_;
    wanted_.clear();
    versions_.clear();
    for (size_t i = 0; i < x.size(); ++i) {
      versions_.push_back(x[i].version());
      if (!inputs_[i].requires_grad()) continue;
      if (!x[i].requires_grad()) x[i] = x[i].detach().requires_grad_();
      wanted_.push_back(x[i]);
    }
    y_ = f_(x);
  }

  const Function& f_;
  const std::vector<Tensor>& inputs_;
  std::vector<Tensor> at_, wanted_;
  std::vector<uint32_t> versions_;
  Tensor y_;
};

void check_inputs(const char* op, const std::vector<Tensor>& inputs) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    any = true;
    ONESTEP_CHECK(DTypeError, inputs[i].dtype() == DType::float64, op, ": input ", i, " is ", inputs[i].dtype(),
                  " (finite differences need float64: make it with DType::float64)");
  }
  ONESTEP_CHECK(GradError, any, op, ": none of ", inputs.size(),
                " inputs requires grad (call requires_grad_() on those to check)");
}

}  // namespace

GradcheckResult gradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  check_inputs("gradcheck", inputs);
  return Checker(f, inputs, options).run();
}

GradcheckResult gradgradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  check_inputs("gradgradcheck", inputs);
  Tensor weights;
  {
    const NoGradGuard no_grad;
    Generator generator(options.seed);
    weights = rand(f(inputs).shape(), generator, DType::float64) * 2 - 1;
  }
  std::vector<Tensor> all = inputs;
  all.push_back(weights.requires_grad_());
  Gradient gradient(f, inputs);
  GradcheckResult result = gradcheck([&](const std::vector<Tensor>& in) { return gradient(in); }, all, options);
  if (!result.passed) result.message.insert(0, "grad");
  return result;
}

}  // namespace onestep
