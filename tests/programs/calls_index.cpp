#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

using Along = Tensor (*)(const Tensor&, int64_t, const Tensor&, const Tensor&);

/// scatter_add, index_copy and their like: op(x, dim, index, source).
template <Along op>
Results along(const Args& a) {
  return op(a.x(), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "src"));
}

template <Tensor (*op)(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view),
          Tensor (*with_number)(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view)>
Results scattered(const Args& a) {
  const std::string reduce = a.text(kKeywordOnly, "reduce", "");
  const int64_t dim = a.integer(1, "dim");
  if (a.is_tensor(3, "src")) return op(a.x(), dim, a.tensor(2, "index"), a.tensor(3, "src"), reduce);
  return with_number(a.x(), dim, a.tensor(2, "index"), a.scalar(3, "value"), reduce);
}

template <Tensor (*op)(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool)>
Results scatter_reduced(const Args& a) {
  return op(a.x(), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "src"), a.text(4, "reduce", ""),
            a.flag(kKeywordOnly, "include_self", true));
}

template <Tensor (*op)(const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar)>
Results index_added(const Args& a) {
  const Scalar alpha = a.has(kKeywordOnly, "alpha") ? a.scalar(kKeywordOnly, "alpha") : Scalar(1);
  return op(a.x(), a.integer(1, "dim"), a.tensor(2, "index"), a.tensor(3, "source"), alpha);
}

template <Tensor (*op)(const Tensor&, int64_t, const Tensor&, const Tensor&),
          Tensor (*with_number)(const Tensor&, int64_t, const Tensor&, Scalar)>
Results filled(const Args& a) {
  const int64_t dim = a.integer(1, "dim");
  if (a.is_tensor(3, "value")) return op(a.x(), dim, a.tensor(2, "index"), a.tensor(3, "value"));
  return with_number(a.x(), dim, a.tensor(2, "index"), a.scalar(3, "value"));
}

template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&)>
Results from_mask(const Args& a) {
  return op(a.x(), a.tensor(1, "mask"), a.tensor(2, "source"));
}

Results take_along_dim_of(const Args& a) { return take_along_dim(a.x(), a.tensor(1, "indices"), optional_dim(a, 2, "dim")); }

}  // namespace

void add_index_calls(CallTable& table) {
  const CallTable rows = {
      {"index_put",
       [](const Args& a) -> Results {
         return index_put(a.x(), a.indices(1, "indices"), a.tensor(2, "values"), a.flag(3, "accumulate"));
       }},
      {"take", [](const Args& a) -> Results { return take(a.x(), a.tensor(1, "index")); }},
      {"take_along_dim", take_along_dim_of},
      {"masked_select", [](const Args& a) -> Results { return masked_select(a.x(), a.tensor(1, "mask")); }},
      {"masked_scatter", from_mask<masked_scatter>},
      {"masked_scatter_", from_mask<masked_scatter_>},
      {"scatter", scattered<scatter, scatter>},
      {"scatter_", scattered<scatter_, scatter_>},
      {"scatter_add", along<scatter_add>},
      {"scatter_add_", along<scatter_add_>},
      {"scatter_reduce", scatter_reduced<scatter_reduce>},
      {"scatter_reduce_", scatter_reduced<scatter_reduce_>},
      {"index_add", index_added<index_add>},
      {"index_add_", index_added<index_add_>},
      {"index_copy", along<index_copy>},
      {"index_copy_", along<index_copy_>},
      {"index_fill", filled<index_fill, index_fill>},
      {"index_fill_", filled<index_fill_, index_fill_>},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace onestep::programs
