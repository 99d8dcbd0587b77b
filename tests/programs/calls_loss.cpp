#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

template <Tensor (*op)(const Tensor&, const Tensor&, Reduction)>
Results plain(const Args& a) {
  return op(a.x(), a.tensor(1, "target"), reduction_of(a));
}

Tensor weight_of(const Args& a) { return a.tensor(kKeywordOnly, "weight"); }
double option(const Args& a, const char* name, double otherwise) { return a.real(kKeywordOnly, name, otherwise); }

Results binary_cross_entropy_of(const Args& a) {
  return binary_cross_entropy(a.x(), a.tensor(1, "target"), {.reduction = reduction_of(a), .weight = weight_of(a)});
}

Results with_logits(const Args& a) {
  return binary_cross_entropy_with_logits(
      a.x(), a.tensor(1, "target"),
      {.reduction = reduction_of(a), .weight = weight_of(a), .pos_weight = a.tensor(kKeywordOnly, "pos_weight")});
}

Results multi_margin(const Args& a) {
  return multi_margin_loss(a.x(), a.tensor(1, "target"),
                           {.reduction = reduction_of(a),
                            .p = static_cast<int>(a.integer(kKeywordOnly, "p", 1)),
                            .margin = option(a, "margin", 1),
                            .weight = weight_of(a)});
}

Results poisson(const Args& a) {
  return poisson_nll_loss(a.x(), a.tensor(1, "target"),
                          {.reduction = reduction_of(a),
                           .log_input = a.flag(kKeywordOnly, "log_input", true),
                           .full = a.flag(kKeywordOnly, "full"),
                           .eps = option(a, "eps", 1e-8)});
}

Results gaussian(const Args& a) {
  return gaussian_nll_loss(a.x(), a.tensor(1, "target"), a.tensor(2, "var"),
                           {.reduction = reduction_of(a), .full = a.flag(kKeywordOnly, "full"), .eps = option(a, "eps", 1e-6)});
}

/// A loss of two operands and their target.
template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, const MarginOptions&)>
Results margin(const Args& a) {
  return op(a.x(), a.tensor(1, "other"), a.tensor(2, "target"),
            {.reduction = reduction_of(a), .margin = option(a, "margin", 0)});
}

Results triplet(const Args& a) {
  return triplet_margin_loss(a.x(), a.tensor(1, "positive"), a.tensor(2, "negative"),
                             {.reduction = reduction_of(a),
                              .margin = option(a, "margin", 1),
                              .p = option(a, "p", 2),
                              .eps = option(a, "eps", 1e-6),
                              .swap = a.flag(kKeywordOnly, "swap")});
}

Results kl_div_of(const Args& a) {
  return kl_div(a.x(), a.tensor(1, "target"), {.reduction = reduction_of(a), .log_target = a.flag(kKeywordOnly, "log_target")});
}

/// A tensor, or a list of numbers.
Tensor lengths(const Args& a, size_t i, const char* name) {
  if (a.is_tensor(i, name)) return a.tensor(i, name);
  const std::vector<int64_t> all = a.list(i, name);
  return from_values(all, {static_cast<int64_t>(all.size())});
}

Results ctc_loss_of(const Args& a) {
  return ctc_loss(
      a.x(), a.tensor(1, "targets"), lengths(a, 2, "input_lengths"), lengths(a, 3, "target_lengths"),
      {.reduction = reduction_of(a), .blank = a.integer(4, "blank", 0), .zero_infinity = a.flag(6, "zero_infinity")});
}

}  // namespace

void add_loss_calls(CallTable& table) {
  const CallTable rows = {
      {"binary_cross_entropy", binary_cross_entropy_of},
      {"binary_cross_entropy_with_logits", with_logits},
      {"multi_margin_loss", multi_margin},
      {"multilabel_margin_loss", plain<multilabel_margin_loss>},
      {"ctc_loss", ctc_loss_of},
      {"multilabel_soft_margin_loss",
       [](const Args& a) -> Results {
         return multilabel_soft_margin_loss(a.x(), a.tensor(1, "target"),
                                            {.reduction = reduction_of(a), .weight = weight_of(a)});
       }},
      {"soft_margin_loss", plain<soft_margin_loss>},
      {"kl_div", kl_div_of},
      {"mse_loss", plain<mse_loss>},
      {"l1_loss", plain<l1_loss>},
      {"smooth_l1_loss",
       [](const Args& a) -> Results {
         return smooth_l1_loss(a.x(), a.tensor(1, "target"), {.reduction = reduction_of(a), .beta = option(a, "beta", 1)});
       }},
      {"huber_loss",
       [](const Args& a) -> Results {
         return huber_loss(a.x(), a.tensor(1, "target"), {.reduction = reduction_of(a), .delta = option(a, "delta", 1)});
       }},
      {"poisson_nll_loss", poisson},
      {"gaussian_nll_loss", gaussian},
      {"normalize",
       [](const Args& a) -> Results {
         return normalize(a.x(), a.real(1, "p", 2), a.integer(2, "dim", 1), a.real(3, "eps", 1e-12));
       }},
      {"cosine_similarity",
       [](const Args& a) -> Results {
         return cosine_similarity(a.x(), a.tensor(1, "x2"), a.integer(2, "dim", 1), a.real(3, "eps", 1e-8));
       }},
      {"pairwise_distance",
       [](const Args& a) -> Results {
         return pairwise_distance(a.x(), a.tensor(1, "x2"), a.real(2, "p", 2), a.real(3, "eps", 1e-6), a.flag(4, "keepdim"));
       }},
      {"margin_ranking_loss", margin<margin_ranking_loss>},
      {"cosine_embedding_loss", margin<cosine_embedding_loss>},
      {"hinge_embedding_loss",
       [](const Args& a) -> Results {
         return hinge_embedding_loss(a.x(), a.tensor(1, "target"),
                                     {.reduction = reduction_of(a), .margin = option(a, "margin", 1)});
       }},
      {"triplet_margin_loss", triplet},
      {"softmin", [](const Args& a) -> Results { return softmin(a.x(), a.integer(1, "dim")); }},
  };
  for (const auto& [name, call] : rows) table[name] = call;
}

}  // namespace onestep::programs
