// Single ops on tensors larger than the caches of a core.
#include "autograd/ops.h"

#include <functional>
#include <map>

#include "autograd/random/generator.h"
#include "bench/header.h"
#include "bench/workloads.h"

namespace onestep::bench {
namespace {

constexpr int64_t kRows = 2048, kCols = 1024, kTokens = 512;

/// What the ops are applied to; all of [kRows, kCols] unless they say otherwise.
struct Inputs {
  Generator g{0};
  Tensor x = randn({kRows, kCols}, g).requires_grad_(), y = randn({kRows, kCols}, g).requires_grad_();
  Tensor positive = add(abs(randn({kRows, kCols}, g)), 0.1).requires_grad_();
  Tensor row = randn({kCols}, g).requires_grad_();                   ///< [kCols]
  Tensor mask = gt(randn({kRows, kCols}, g), 0.0);                   ///< Half of them true.
  Tensor unit = sigmoid(randn({kRows, kCols}, g)).requires_grad_();  ///< Between 0 and 1.
  Tensor targets = sigmoid(randn({kRows, kCols}, g));                ///< The same without a gradient.
  Tensor signs = sign(randn({kRows, kCols}, g));                     ///< 1 and -1.
  Tensor rows = randint(0, kRows, {kRows}, g), cols = randint(0, kCols, {kRows}, g);
  Tensor columns = randint(0, kCols, {kCols}, g);
  Tensor order = argsort(randn({kRows}, g));             ///< [kRows], every row once
  Tensor ordered = sort(randn({kCols}, g), 0).values;    ///< [kCols]
  Tensor places = randint(0, kCols, {kRows, kCols}, g);  ///< Columns.
  Tensor images = randn({32, 64, 32, 32}, g).requires_grad_(), channels = randn({64}, g).requires_grad_();
  Tensor scratch = randn({kRows, kCols}, g);  ///< What ops write to.
  Tensor doubles = randn({kRows / 2, kCols}, g).to(DType::float64).requires_grad_();
  Tensor halves = randn({kRows, kCols}, g).to(DType::bfloat16).requires_grad_();
  Tensor pictures = randn({8, 3, 224, 224}, g), patches = randn({64, 3, 16, 16}, g).requires_grad_();
  Tensor labels = randint(1, kCols, {16, 20}, g), label_counts = full({16}, 20, DType::int64),
         frame_counts = full({16}, 128, DType::int64);
  Tensor heads = randn({8, kTokens, 64}, g).requires_grad_();  ///< [heads, tokens, features]
  Tensor attended = gt(randn({kTokens, kTokens}, g), 0.0);     ///< [tokens, tokens]

  Tensor signals() const { return reshape(images, {32, 64, 1024}); }
  Tensor frames() const { return reshape(x, {128, 16, kCols}); }
};

using Op = std::function<Tensor(const Inputs&)>;

const std::map<std::string, Op>& cases() {
  static const std::map<std::string, Op> table = {
      {"abs", [](const Inputs& in) { return abs(in.x); }},
      {"acos", [](const Inputs& in) { return acos(in.unit); }},
      {"adaptive_avg_pool1d", [](const Inputs& in) { return adaptive_avg_pool1d(in.signals(), 10); }},
      {"adaptive_avg_pool2d", [](const Inputs& in) { return adaptive_avg_pool2d(in.images, 7); }},
      {"add", [](const Inputs& in) { return add(in.x, in.y); }},
      {"add_product", [](const Inputs& in) { return add_product(in.x, in.y, in.y, 0.5); }},
      {"add_quotient", [](const Inputs& in) { return add_quotient(in.x, in.y, in.positive, 0.5); }},
      {"add_row", [](const Inputs& in) { return add(in.x, in.row); }},
      {"add_scaled", [](const Inputs& in) { return add(in.x, in.y, 0.5); }},
      {"add_transposed", [](const Inputs& in) { return add(t(in.x), t(in.y)); }},
      {"all", [](const Inputs& in) { return all(in.mask, {1}); }},
      {"amax", [](const Inputs& in) { return amax(in.x, {1}); }},
      {"argmax", [](const Inputs& in) { return argmax(in.x, 1); }},
      {"argsort", [](const Inputs& in) { return argsort(in.x, 1); }},
      {"asinh", [](const Inputs& in) { return asinh(in.x); }},
      {"atan", [](const Inputs& in) { return atan(in.x); }},
      {"atan2", [](const Inputs& in) { return atan2(in.x, in.y); }},
      {"atanh", [](const Inputs& in) { return atanh(in.unit); }},
      {"attention_mask",
       [](const Inputs& in) { return scaled_dot_product_attention(in.heads, in.heads, in.heads, {.mask = in.attended}); }},
      {"avg_pool2d", [](const Inputs& in) { return avg_pool2d(in.images, 2); }},
      {"batch_norm", [](const Inputs& in) { return batch_norm(in.images, {}, {}, in.channels, in.channels, true); }},
      {"batch_norm_rows", [](const Inputs& in) { return batch_norm(in.x, {}, {}, in.row, in.row, true); }},
      {"binary_cross_entropy", [](const Inputs& in) { return binary_cross_entropy(in.unit, in.targets); }},
      {"binary_cross_entropy_with_logits", [](const Inputs& in) { return binary_cross_entropy_with_logits(in.x, in.targets); }},
      {"bincount", [](const Inputs& in) { return bincount(in.rows); }},
      {"bmm", [](const Inputs& in) { return matmul(in.heads, transpose(in.heads, 1, 2)); }},
      {"cat",
       [](const Inputs& in) {
         return cat({in.x, in.y}, 1);
       }},
      {"celu", [](const Inputs& in) { return celu(in.x); }},
      {"clamp", [](const Inputs& in) { return clamp(in.x, -1, 1); }},
      {"conv_patches", [](const Inputs& in) { return conv2d(in.pictures, in.patches, {}, 16); }},
      {"copy_turned", [](const Inputs& in) { return copy_(t(in.scratch), t(in.y.detach())); }},
      {"copysign", [](const Inputs& in) { return copysign(in.x, in.y); }},
      {"cos", [](const Inputs& in) { return cos(in.x); }},
      {"cosh", [](const Inputs& in) { return cosh(in.x); }},
      {"cosine_similarity", [](const Inputs& in) { return cosine_similarity(in.x, in.y); }},
      {"count_nonzero", [](const Inputs& in) { return count_nonzero(in.x, {1}); }},
      {"cross_entropy", [](const Inputs& in) { return cross_entropy(in.x, in.cols); }},
      {"ctc_loss", [](const Inputs& in) { return ctc_loss(in.frames(), in.labels, in.frame_counts, in.label_counts); }},
      {"cummax", [](const Inputs& in) { return cummax(in.x, 1).values; }},
      {"cumprod", [](const Inputs& in) { return cumprod(in.unit, 1); }},
      {"cumsum", [](const Inputs& in) { return cumsum(in.x, 1); }},
      {"diff", [](const Inputs& in) { return diff(in.x); }},
      {"digamma", [](const Inputs& in) { return digamma(in.positive); }},
      {"div", [](const Inputs& in) { return div(in.x, in.positive); }},
      {"dropout", [](const Inputs& in) { return dropout(in.x, 0.1); }},
      {"elu", [](const Inputs& in) { return elu(in.x); }},
      {"embedding", [](const Inputs& in) { return embedding(in.rows, in.x); }},
      {"embedding_bag",
       [](const Inputs& in) {
         return embedding_bag(reshape(in.rows, {kRows / 32, 32}), in.x);
       }},
      {"entr", [](const Inputs& in) { return entr(in.positive); }},
      {"eq", [](const Inputs& in) { return eq(in.x, in.y); }},
      {"erf", [](const Inputs& in) { return erf(in.x); }},
      {"erfc", [](const Inputs& in) { return erfc(in.x); }},
      {"erfcx", [](const Inputs& in) { return erfcx(in.unit); }},
      {"erfinv", [](const Inputs& in) { return erfinv(in.unit); }},
      {"exp", [](const Inputs& in) { return exp(in.x); }},
      {"exp2", [](const Inputs& in) { return exp2(in.x); }},
      {"exp_float64", [](const Inputs& in) { return exp(in.doubles); }},
      {"expm1", [](const Inputs& in) { return expm1(in.x); }},
      {"flip", [](const Inputs& in) { return flip(in.x, {1}); }},
      {"floor", [](const Inputs& in) { return floor(in.x); }},
      {"floor_divide", [](const Inputs& in) { return floor_divide(in.x, in.positive); }},
      {"fmod", [](const Inputs& in) { return fmod(in.x, in.positive); }},
      {"gather", [](const Inputs& in) { return gather(in.x, 1, in.places); }},
      {"gaussian_nll_loss", [](const Inputs& in) { return gaussian_nll_loss(in.x, in.y, in.positive); }},
      {"gelu", [](const Inputs& in) { return gelu(in.x); }},
      {"gelu_tanh", [](const Inputs& in) { return gelu(in.x, GeluApproximation::tanh); }},
      {"glu", [](const Inputs& in) { return glu(in.x); }},
      {"group_norm", [](const Inputs& in) { return group_norm(in.images, 8, in.channels, in.channels); }},
      {"group_norm_rows", [](const Inputs& in) { return group_norm(in.x, 32, in.row, in.row); }},
      {"gt", [](const Inputs& in) { return gt(in.x, in.y); }},
      {"hardshrink", [](const Inputs& in) { return hardshrink(in.x); }},
      {"hardsigmoid", [](const Inputs& in) { return hardsigmoid(in.x); }},
      {"hardswish", [](const Inputs& in) { return hardswish(in.x); }},
      {"hardtanh", [](const Inputs& in) { return hardtanh(in.x); }},
      {"huber_loss", [](const Inputs& in) { return huber_loss(in.x, in.y); }},
      {"hypot", [](const Inputs& in) { return hypot(in.x, in.y); }},
      {"i0", [](const Inputs& in) { return i0(in.x); }},
      {"i0e", [](const Inputs& in) { return i0e(in.x); }},
      {"i1", [](const Inputs& in) { return i1(in.x); }},
      {"i1e", [](const Inputs& in) { return i1e(in.x); }},
      {"igamma", [](const Inputs& in) { return igamma(in.positive.detach(), in.unit); }},
      {"im2col", [](const Inputs& in) { return im2col(in.images, 3); }},
      {"index",
       [](const Inputs& in) {
         return index(in.x, {in.rows, in.cols});
       }},
      {"index_add", [](const Inputs& in) { return index_add(in.x, 0, in.rows, in.y); }},
      {"index_copy", [](const Inputs& in) { return index_copy(in.x, 0, in.order, in.y); }},
      {"index_put", [](const Inputs& in) { return index_put(in.x, {in.rows}, in.y, true); }},
      {"index_put_columns",
       [](const Inputs& in) {
         return index_put_(in.scratch, {Slice(), in.columns}, in.y.detach());
       }},
      {"index_select", [](const Inputs& in) { return index_select(in.x, 1, in.cols); }},
      {"instance_norm", [](const Inputs& in) { return instance_norm(in.images); }},
      {"interpolate_bilinear",
       [](const Inputs& in) { return interpolate(in.images, {.scale_factor = {2.0}, .mode = InterpolationMode::bilinear}); }},
      {"interpolate_linear",
       [](const Inputs& in) { return interpolate(in.signals(), {.scale_factor = {2.0}, .mode = InterpolationMode::linear}); }},
      {"interpolate_nearest", [](const Inputs& in) { return interpolate(in.images, {.scale_factor = {2.0}}); }},
      {"isclose", [](const Inputs& in) { return isclose(in.x, in.y); }},
      {"isfinite", [](const Inputs& in) { return isfinite(in.x); }},
      {"kl_div", [](const Inputs& in) { return kl_div(in.x, in.targets); }},
      {"kthvalue", [](const Inputs& in) { return kthvalue(in.x, 100, 1).values; }},
      {"l1_loss", [](const Inputs& in) { return l1_loss(in.x, in.y); }},
      {"layer_norm", [](const Inputs& in) { return layer_norm(in.x, {kCols}, in.row, in.row); }},
      {"layer_norm_bf16", [](const Inputs& in) { return layer_norm(in.halves, {kCols}); }},
      {"leaky_relu", [](const Inputs& in) { return leaky_relu(in.x); }},
      {"lerp", [](const Inputs& in) { return lerp(in.x, in.y, 0.3); }},
      {"lgamma", [](const Inputs& in) { return lgamma(in.positive); }},
      {"log", [](const Inputs& in) { return log(in.positive); }},
      {"log10", [](const Inputs& in) { return log10(in.positive); }},
      {"log1p", [](const Inputs& in) { return log1p(in.positive); }},
      {"log2", [](const Inputs& in) { return log2(in.positive); }},
      {"log_ndtr", [](const Inputs& in) { return log_ndtr(in.x); }},
      {"log_softmax", [](const Inputs& in) { return log_softmax(in.x, 1); }},
      {"logaddexp", [](const Inputs& in) { return logaddexp(in.x, in.y); }},
      {"logcumsumexp", [](const Inputs& in) { return logcumsumexp(in.x, 1); }},
      {"logical_and", [](const Inputs& in) { return logical_and(in.mask, in.mask); }},
      {"logical_not", [](const Inputs& in) { return logical_not(in.mask); }},
      {"logit", [](const Inputs& in) { return logit(in.unit); }},
      {"logsigmoid", [](const Inputs& in) { return logsigmoid(in.x); }},
      {"logsumexp", [](const Inputs& in) { return logsumexp(in.x, {1}); }},
      {"mask_assign", [](const Inputs& in) { return index_put_(in.scratch, {in.mask}, 0); }},
      {"masked_fill", [](const Inputs& in) { return masked_fill(in.x, in.mask, 0.0); }},
      {"masked_scatter", [](const Inputs& in) { return masked_scatter(in.x, in.mask, in.y); }},
      {"masked_select", [](const Inputs& in) { return masked_select(in.x, in.mask); }},
      {"max", [](const Inputs& in) { return max(in.x, 1).values; }},
      {"max_pool1d", [](const Inputs& in) { return max_pool1d(in.signals(), 2); }},
      {"max_pool2d", [](const Inputs& in) { return max_pool2d(in.images, 2); }},
      {"maximum", [](const Inputs& in) { return maximum(in.x, in.y); }},
      {"mean", [](const Inputs& in) { return mean(in.x, {1}); }},
      {"median", [](const Inputs& in) { return median(in.x, 1).values; }},
      {"mish", [](const Inputs& in) { return mish(in.x); }},
      {"mse_loss", [](const Inputs& in) { return mse_loss(in.x, in.y); }},
      {"mul", [](const Inputs& in) { return mul(in.x, in.y); }},
      {"multi_margin_loss", [](const Inputs& in) { return multi_margin_loss(in.x, in.cols); }},
      {"mv", [](const Inputs& in) { return matmul(in.x, in.row); }},
      {"nan_to_num", [](const Inputs& in) { return nan_to_num(in.x); }},
      {"nansum", [](const Inputs& in) { return nansum(in.x, {1}); }},
      {"ndtr", [](const Inputs& in) { return ndtr(in.x); }},
      {"ndtri", [](const Inputs& in) { return ndtri(in.unit); }},
      {"neg", [](const Inputs& in) { return neg(in.x); }},
      {"nll_loss", [](const Inputs& in) { return nll_loss(in.x, in.cols); }},
      {"nonzero", [](const Inputs& in) { return nonzero(in.mask); }},
      {"norm", [](const Inputs& in) { return norm(in.x); }},
      {"norm_rows", [](const Inputs& in) { return norm(in.x, 2.0, {1}); }},
      {"normalize", [](const Inputs& in) { return normalize(in.x); }},
      {"one_hot", [](const Inputs& in) { return one_hot(in.cols, kCols); }},
      {"outer", [](const Inputs& in) { return outer(in.row, in.row); }},
      {"pad", [](const Inputs& in) { return pad(in.images, {1, 1, 1, 1}); }},
      {"pad_reflect", [](const Inputs& in) { return pad(in.images, {1, 1, 1, 1}, PadMode::reflect); }},
      {"pairwise_distance", [](const Inputs& in) { return pairwise_distance(in.x, in.y); }},
      {"permute",
       [](const Inputs& in) { return contiguous(permute(reshape(in.images, {32, 16, 2, 2, 32, 32}), {0, 1, 4, 2, 5, 3})); }},
      {"poisson", [](const Inputs& in) { return poisson(in.positive); }},
      {"poisson_nll_loss", [](const Inputs& in) { return poisson_nll_loss(in.x, in.positive); }},
      {"pow", [](const Inputs& in) { return pow(in.positive, 1.5); }},
      {"pow_tensor", [](const Inputs& in) { return pow(in.positive, in.y); }},
      {"prelu", [](const Inputs& in) { return prelu(in.x, in.row); }},
      {"prod", [](const Inputs& in) { return prod(in.unit, 1); }},
      {"prod_columns", [](const Inputs& in) { return prod(in.unit, 0); }},
      {"reciprocal", [](const Inputs& in) { return reciprocal(in.positive); }},
      {"relu", [](const Inputs& in) { return relu(in.x); }},
      {"relu6", [](const Inputs& in) { return relu6(in.x); }},
      {"relu_", [](const Inputs& in) { return relu_(in.scratch); }},
      {"remainder", [](const Inputs& in) { return remainder(in.x, in.positive); }},
      {"repeat", [](const Inputs& in) { return repeat(in.x, {1, 2}); }},
      {"repeat_interleave", [](const Inputs& in) { return repeat_interleave(in.x, 2, 0); }},
      {"roll", [](const Inputs& in) { return roll(in.x, {3}, {1}); }},
      {"round", [](const Inputs& in) { return round(in.x); }},
      {"rsqrt", [](const Inputs& in) { return rsqrt(in.positive); }},
      {"scatter", [](const Inputs& in) { return scatter(in.x, 1, in.places, in.y); }},
      {"scatter_add", [](const Inputs& in) { return scatter_add(in.x, 1, in.places, in.y); }},
      {"searchsorted", [](const Inputs& in) { return searchsorted(in.ordered, in.x); }},
      {"selu", [](const Inputs& in) { return selu(in.x); }},
      {"sigmoid", [](const Inputs& in) { return sigmoid(in.x); }},
      {"sign", [](const Inputs& in) { return sign(in.x); }},
      {"silu", [](const Inputs& in) { return silu(in.x); }},
      {"sin", [](const Inputs& in) { return sin(in.x); }},
      {"sinh", [](const Inputs& in) { return sinh(in.x); }},
      {"smooth_l1_loss", [](const Inputs& in) { return smooth_l1_loss(in.x, in.y); }},
      {"soft_margin_loss", [](const Inputs& in) { return soft_margin_loss(in.x, in.signs); }},
      {"softmax", [](const Inputs& in) { return softmax(in.x, 1); }},
      {"softmax_bf16", [](const Inputs& in) { return softmax(in.halves, 1); }},
      {"softmax_columns", [](const Inputs& in) { return softmax(in.x, 0); }},
      {"softmax_float64", [](const Inputs& in) { return softmax(in.doubles, 1); }},
      {"softmax_middle", [](const Inputs& in) { return softmax(in.frames(), 1); }},
      {"softplus", [](const Inputs& in) { return softplus(in.x); }},
      {"softshrink", [](const Inputs& in) { return softshrink(in.x); }},
      {"softsign", [](const Inputs& in) { return softsign(in.x); }},
      {"sort", [](const Inputs& in) { return sort(in.x, 1).values; }},
      {"sqrt", [](const Inputs& in) { return sqrt(in.positive); }},
      {"square", [](const Inputs& in) { return square(in.x); }},
      {"stack", [](const Inputs& in) { return stack({in.x, in.y}); }},
      {"standard_gamma", [](const Inputs& in) { return standard_gamma(in.positive); }},
      {"std", [](const Inputs& in) { return std(in.x, {1}); }},
      {"sum", [](const Inputs& in) { return sum(in.x); }},
      {"sum_bf16", [](const Inputs& in) { return sum(in.halves); }},
      {"sum_columns", [](const Inputs& in) { return sum(in.x, {0}); }},
      {"sum_integers", [](const Inputs& in) { return sum(in.places); }},
      {"take", [](const Inputs& in) { return take(in.x, in.places); }},
      {"tan", [](const Inputs& in) { return tan(in.x); }},
      {"tanh", [](const Inputs& in) { return tanh(in.x); }},
      {"tanh_float64", [](const Inputs& in) { return tanh(in.doubles); }},
      {"tanhshrink", [](const Inputs& in) { return tanhshrink(in.x); }},
      {"topk", [](const Inputs& in) { return topk(in.x, 10, 1).values; }},
      {"transpose", [](const Inputs& in) { return contiguous(t(in.x)); }},
      {"tril", [](const Inputs& in) { return tril(in.x); }},
      {"triplet_margin_loss", [](const Inputs& in) { return triplet_margin_loss(in.x, in.y, in.positive); }},
      {"unique", [](const Inputs& in) { return unique(in.rows).values; }},
      {"var", [](const Inputs& in) { return var(in.x, {1}); }},
      {"where", [](const Inputs& in) { return where(in.mask, in.x, in.y); }},
      {"windows", [](const Inputs& in) { return contiguous(unfold(in.x, 1, 8, 4)); }},
      {"xlogy", [](const Inputs& in) { return xlogy(in.x, in.positive); }},
  };
  return table;
}

}  // namespace

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto& [name, _] : cases()) names.push_back(name);
  return names;
}

nlohmann::ordered_json bench_op(const OpWork& work, double seconds) {
  const Op& op = cases().at(work.op);
  Inputs in;
  const Tensor y = op(in), dy = ones(y.shape(), y.dtype());
  ONESTEP_CHECK(ConfigError, y.requires_grad() || !work.backward, "bench op: ", work.op,
                " has no backward pass: --mode must be fwd");
  std::vector<Tensor> leaves = {in.x,      in.y,        in.positive, in.unit,   in.row,    in.heads,
                                in.images, in.channels, in.doubles,  in.halves, in.patches};
  const auto call = [&] {
    if (!work.backward) {
      const NoGradGuard no_grad;
      op(in);
      return;
    }
    for (Tensor& leaf : leaves) leaf.zero_grad();
    op(in).backward(dy);
  };
  call();
  const double first = process_age();
  auto result = header("op");
  result.update({{"mode", work.backward ? "fwdbwd" : "fwd"}, {"op", work.op}});
  return report(std::move(result), time_calls(call, {.seconds = seconds}), first);
}

}  // namespace onestep::bench
