// Distances between vectors, and losses that ask for a margin.
#include "autograd/autocast.h"
#include "autograd/creation.h"
#include "autograd/operators.h"
#include "autograd/ops/loss_common.h"
#include "autograd/ops_index.h"

namespace onestep {

Tensor normalize(const Tensor& x, double p, const Shape& dims, double eps) {
  ops::check_floating("normalize", x);
  if (is_narrow(x.dtype())) return to(normalize(ops::wide(x), p, dims, eps), x.dtype());  // in which eps may be 0
  return div(x, clamp(norm(x, p, normalize_dims("normalize", dims, x.dim()), true), eps));
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  constexpr const char* op = "cosine_similarity";
  for (const Tensor* x : {&a, &b}) ops::check_floating(op, *x);
  const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
  const Tensor x = expand(a, shape), y = expand(b, shape);
  normalize_dim(op, dim, shape.rank());
  if (is_narrow(a.dtype()) && is_narrow(b.dtype()))
    return to(cosine_similarity(ops::wide(a), ops::wide(b), dim, eps), promote_types(a.dtype(), b.dtype()));
  const auto unit = [=](const Tensor& v) { return div(v, ops::raised(norm(v, 2, dim, true), eps)); };
  return sum(mul(unit(x), unit(y)), dim);
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  constexpr const char* op = "pairwise_distance";
  ONESTEP_CHECK(ShapeError, broadcast_shapes(op, a.shape(), b.shape()).rank() > 0, op, ": needs vectors: got shape []");
  return norm(a - b + eps, p, -1, keepdim);
}

namespace {

/// The targets of each row of scores [N, C].
struct Labels {
  Tensor places;       ///< int64 [N, C], 0 after the last one.
  Tensor unlisted;     ///< bool [N, C]: places after the last one.
  Tensor is_labelled;  ///< bool [N, C]: classes that are targets.
};

Labels labels_of(const char* op, const Tensor& target) {
  const Tensor rows = ops::contiguous_values(to(target, DType::int64));
  const int64_t n = rows.shape()[0], classes = rows.shape()[1];
  Labels labels{zeros({n, classes}, DType::int64), ones({n, classes}, DType::boolean), zeros({n, classes}, DType::boolean)};
  const auto* from = rows.data<int64_t>();
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t i = r * classes; i < (r + 1) * classes && from[i] != -1; ++i) {
      ONESTEP_CHECK(IndexError, 0 <= from[i] && from[i] < classes, op, ": target ", from[i], " at position ", i,
                    " is out of range for ", classes, " classes");
      labels.places.mutable_data<int64_t>()[i] = from[i];
      labels.unlisted.mutable_data<bool>()[i] = false;
      labels.is_labelled.mutable_data<bool>()[r * classes + from[i]] = true;
    }
  }
  return labels;
}

}  // namespace

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  constexpr const char* op = "multilabel_margin_loss";
  ops::check_floating(op, input);
  ONESTEP_CHECK(DTypeError, !target.is_floating() && target.dtype() != DType::boolean, op, ": targets must be int64: got ",
                target.dtype());
  ONESTEP_CHECK(ShapeError, input.dim() <= 2 && (input.dim() == 0 || input.size(-1) > 0) && target.shape() == input.shape(), op,
                ": needs scores [C] or [N, C] and targets of the same shape: got ", input.shape(), " and ", target.shape());
  if (is_narrow(input.dtype())) return to(multilabel_margin_loss(ops::wide(input), target, reduction), ops::loss_dtype(input));
  const int64_t classes = input.dim() == 0 ? 1 : input.size(-1);
  const Tensor x = reshape(input, {input.numel() / classes, classes});
  const Labels labels = labels_of(op, reshape(target, x.shape()));
  const Tensor over = relu(1.0 - unsqueeze(gather(x, 1, labels.places), 2) + unsqueeze(x, 1));
  const Tensor skipped = logical_or(unsqueeze(labels.unlisted, 2), unsqueeze(labels.is_labelled, 1));
  const Tensor losses = div(sum(masked_fill(over, skipped, 0), {1, 2}), classes);
  return ops::reduced(op, input.dim() == 2 ? losses : squeeze(losses, 0), reduction);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, const MarginOptions& options) {
  constexpr const char* op = "margin_ranking_loss";
  broadcast_shapes(op, broadcast_shapes(op, a.shape(), b.shape()), target.shape());
  return ops::reduced(op, clamp(neg(target) * (a - b) + options.margin, 0.0), options.reduction);
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, const MarginOptions& options) {
  constexpr const char* op = "cosine_embedding_loss";
  constexpr double kEps = 1e-12;
  const int rank = target.dim() + 1;
  ONESTEP_CHECK(ShapeError, rank <= 2 && a.dim() == rank && b.dim() == rank, op,
                ": needs vectors [d] with a target [], or [N, d] with [N]: got ", a.shape(), ", ", b.shape(), " and ",
                target.shape());
  const Shape batch = broadcast_shapes(op, a.shape(), b.shape());
  if (rank == 2) broadcast_shapes(op, Shape{batch[0]}, target.shape());
  const Tensor size = sqrt((sum(a * a, -1) + kEps) * (sum(b * b, -1) + kEps)), cosine = div(sum(a * b, -1), size);
  const Tensor near = masked_fill(1.0 - cosine, ne(target, 1), 0);
  const Tensor far = masked_fill(clamp(cosine - options.margin, 0.0), ne(target, -1), 0);
  return ops::reduced(op, near + far, options.reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingOptions& options) {
  constexpr const char* op = "hinge_embedding_loss";
  ops::check_floating(op, input);
  broadcast_shapes(op, input.shape(), target.shape());
  const Tensor near = masked_fill(input, eq(target, -1), 0);
  const Tensor far = masked_fill(clamp(options.margin - input, 0.0), eq(target, 1), 0);
  return ops::reduced(op, near + far, options.reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options) {
  constexpr const char* op = "triplet_margin_loss";
  ONESTEP_CHECK(ConfigError, options.margin > 0, op, ": the margin must be positive: got ", options.margin);
  broadcast_shapes(op, broadcast_shapes(op, anchor.shape(), positive.shape()), negative.shape());
  const auto distance = [&](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b, options.p, options.eps); };
  Tensor far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return ops::reduced(op, clamp(distance(anchor, positive) - far + options.margin, 0.0), options.reduction);
}

}  // namespace onestep
