// Counting elements.
#include <algorithm>
#include <cmath>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/indexing.h"
#include "autograd/ops_order.h"
#include "autograd/ops_shape.h"

namespace onestep {

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  const NoGradGuard no_grad;
  ONESTEP_CHECK(DTypeError, !x.is_floating(), "bincount: needs integers: got ", x.dtype());
  ONESTEP_CHECK(ShapeError, x.dim() == 1, "bincount: needs a vector: got shape ", x.shape());
  ONESTEP_CHECK(ShapeError, minlength >= 0, "bincount: minlength must not be negative: got ", minlength);
  ONESTEP_CHECK(ShapeError, !weights.defined() || weights.shape() == x.shape(), "bincount: weights of shape ", weights.shape(),
                " for ", x.shape(), " numbers");
  const Tensor places = to(x, DType::int64);
  const int64_t found = x.numel() == 0 ? 0 : max(places).item<int64_t>() + 1, bins = std::max(found, minlength);
  ops::checked_index("bincount", places, bins, 0);
  if (!weights.defined()) return scatter_add_(zeros(bins, DType::int64), 0, places, expand(ones({}, DType::int64), x.shape()));
  const DType dtype = weights.dtype() == DType::float32 ? DType::float32 : DType::float64;
  return scatter_add_(zeros(bins, dtype), 0, places, to(weights, dtype));
}

Tensor histc(const Tensor& x, int64_t bins, double min, double max) {
  const NoGradGuard no_grad;
  ONESTEP_CHECK(ShapeError, bins > 0, "histc: needs at least one bin: got ", bins);
  if (min == max && x.numel() > 0) {
    min = onestep::min(x).item();
    max = onestep::max(x).item();
  }
  if (min == max) {
    min -= 1;
    max += 1;
  }
  ONESTEP_CHECK(ConfigError, std::isfinite(min) && std::isfinite(max) && min <= max, "histc: no range: from ", min, " to ",
                max);
  const Tensor elements = ops::contiguous_values(ops::widened(x));
  Tensor y = zeros(bins, elements.dtype());
  dispatch_floating(y.dtype(), "histc", [&]<class T>() {
    const T low = static_cast<T>(min), high = static_cast<T>(max), *const from = elements.data<T>();
    T* const to = y.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (!(low <= from[i] && from[i] <= high)) continue;
      const auto bin = static_cast<int64_t>((from[i] - low) * static_cast<T>(bins) / (high - low));
      to[std::min(bin, bins - 1)] += 1;
    }
  });
  return to(y, x.dtype());
}

Tensor one_hot(const Tensor& classes, int64_t num_classes) {
  const NoGradGuard no_grad;
  ONESTEP_CHECK(ShapeError, num_classes > 0 || (num_classes == -1 && classes.numel() > 0), "one_hot: ", num_classes,
                " classes for a tensor of shape ", classes.shape());
  const int64_t n = num_classes == -1 ? std::max<int64_t>(max(classes).item<int64_t>() + 1, 1) : num_classes;
  ops::checked_index("one_hot", classes, n, 0);
  Shape shape = classes.shape();
  shape.push_back(n);
  return scatter_(zeros(shape, DType::int64), -1, unsqueeze(classes, -1), 1);
}

}  // namespace onestep
