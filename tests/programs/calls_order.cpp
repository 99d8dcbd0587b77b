#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

Results median_of(const Args& a) {
  if (a.has(1, "dim")) return median(a.x(), a.integer(1, "dim"), a.flag(2, "keepdim"));
  return median(a.x());
}

/// PyTorch says right=True or side="right".
bool right_of(const Args& a) { return a.flag(kKeywordOnly, "right") || a.text(kKeywordOnly, "side", "left") == "right"; }

bool out_int32(const Args& a) { return a.flag(kKeywordOnly, "out_int32"); }

Results searchsorted_of(const Args& a) {
  const Tensor sorter = a.tensor(kKeywordOnly, "sorter");
  if (!a.is_tensor(1, "values"))
    return searchsorted(a.tensor(0, "sorted"), a.scalar(1, "values"), out_int32(a), right_of(a), sorter);
  return searchsorted(a.tensor(0, "sorted"), a.tensor(1, "values"), out_int32(a), right_of(a), sorter);
}

Results bucketize_of(const Args& a) {
  if (!a.is_tensor(0, "input")) return bucketize(a.scalar(0, "input"), a.tensor(1, "boundaries"), out_int32(a), right_of(a));
  return bucketize(a.x(), a.tensor(1, "boundaries"), out_int32(a), right_of(a));
}

Results unique_of(const Args& a) {
  const bool inverse = a.flag(2, "return_inverse"), counts = a.flag(3, "return_counts");
  const std::optional<int64_t> dim = optional_dim(a, 4, "dim");
  const UniqueResult all = unique(a.x(), a.flag(1, "sorted", true), inverse, counts, dim);
  std::vector<Tensor> asked = {all.values};
  if (inverse) asked.push_back(all.inverse);
  if (counts) asked.push_back(all.counts);
  return asked;
}

}  // namespace

void add_order_calls(CallTable& table) {
  const CallTable rows = {
      {"sort",
       [](const Args& a) -> Results {
         return sort(a.x(), a.integer(1, "dim", -1), a.flag(2, "descending"), a.flag(kKeywordOnly, "stable"));
       }},
      {"argsort",
       [](const Args& a) -> Results {
         return argsort(a.x(), a.integer(1, "dim", -1), a.flag(2, "descending"), a.flag(kKeywordOnly, "stable"));
       }},
      {"topk",
       [](const Args& a) -> Results {
         return topk(a.x(), a.integer(1, "k"), a.integer(2, "dim", -1), a.flag(3, "largest", true), a.flag(4, "sorted", true));
       }},
      {"kthvalue",
       [](const Args& a) -> Results {
         return kthvalue(a.x(), a.integer(1, "k"), a.integer(2, "dim", -1), a.flag(3, "keepdim"));
       }},
      {"median", median_of},
      {"searchsorted", searchsorted_of},
      {"bucketize", bucketize_of},
      {"unique", unique_of},
      {"bincount",
       [](const Args& a) -> Results { return bincount(a.x(), a.tensor(1, "weights"), a.integer(2, "minlength", 0)); }},
      {"histc",
       [](const Args& a) -> Results {
         return histc(a.x(), a.integer(1, "bins", 100), a.real(2, "min", 0), a.real(3, "max", 0));
       }},
      {"one_hot", [](const Args& a) -> Results { return one_hot(a.x(), a.integer(1, "num_classes", -1)); }},
      {"cumprod", along_dim_in<cumprod, cumprod>},
      {"logcumsumexp", [](const Args& a) -> Results { return logcumsumexp(a.x(), a.integer(1, "dim")); }},
      {"cummax", scan<cummax>},
      {"cummin", scan<cummin>},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace onestep::programs
