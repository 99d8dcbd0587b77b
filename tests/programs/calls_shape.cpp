#include "tests/programs/call.h"

namespace onestep::programs {
namespace {

Results index_put_of(const Args& a) {
  if (a.is_tensor(2, "values"))
    return index_put_(a.x(), a.indices(1, "indices"), a.tensor(2, "values"), a.flag(3, "accumulate"));
  return index_put_(a.x(), a.indices(1, "indices"), a.scalar(2, "values"));
}

template <Tensor (*op)(const Tensor&, const Tensor&, Scalar),
          Tensor (*with_tensor)(const Tensor&, const Tensor&, const Tensor&)>
Results masked(const Args& a) {
  if (a.is_tensor(2, "value")) return with_tensor(a.x(), a.tensor(1, "mask"), a.tensor(2, "value"));
  return op(a.x(), a.tensor(1, "mask"), a.scalar(2, "value"));
}

Results squeeze_of(const Args& a) {
  if (a.is_list(1, "dim")) return squeeze(a.x(), a.shape(1, "dim"));
  return a.has(1, "dim") ? squeeze(a.x(), a.integer(1, "dim")) : squeeze(a.x());
}

Results split_of(const Args& a) {
  if (a.is_list(1, "split_size")) return split(a.x(), a.integers(1, "split_size"), a.integer(2, "dim", 0));
  return split(a.x(), a.integer(1, "split_size"), a.integer(2, "dim", 0));
}

Results slice_of(const Args& a) {  // slice(x, dim, start, end, step) as torch.ops.aten.slice
  constexpr int64_t kEnd = int64_t{1} << 60;
  return slice(a.x(), a.integer(1, "dim", 0), a.integer(2, "start", 0), a.integer(3, "end", kEnd), a.integer(4, "step", 1));
}

Results as_strided_of(const Args& a) {
  std::optional<int64_t> offset;
  if (a.has(3, "storage_offset")) offset = a.integer(3, "storage_offset");
  return as_strided(a.x(), a.shape(1, "size"), a.shape(2, "stride"), offset);
}

Results nonzero_of(const Args& a) {
  if (a.flag(1, "as_tuple")) return nonzero_numpy(a.x());
  return nonzero(a.x());
}

}  // namespace

void add_shape_calls(CallTable& table) {
  const CallTable rows = {
      {"masked_fill", masked<masked_fill, masked_fill>},
      {"masked_fill_", masked<masked_fill_, masked_fill_>},
      {"tril", [](const Args& a) -> Results { return tril(a.x(), a.integer(1, "diagonal", 0)); }},
      {"triu", [](const Args& a) -> Results { return triu(a.x(), a.integer(1, "diagonal", 0)); }},
      {"view", [](const Args& a) -> Results { return view(a.x(), a.shape(1, "shape")); }},
      {"reshape", [](const Args& a) -> Results { return reshape(a.x(), a.shape(1, "shape")); }},
      {"flatten",
       [](const Args& a) -> Results { return flatten(a.x(), a.integer(1, "start_dim", 0), a.integer(2, "end_dim", -1)); }},
      {"transpose", [](const Args& a) -> Results { return transpose(a.x(), a.integer(1, "dim0"), a.integer(2, "dim1")); }},
      {"t", [](const Args& a) -> Results { return t(a.x()); }},
      {"permute", [](const Args& a) -> Results { return permute(a.x(), a.shape(1, "dims")); }},
      {"contiguous", [](const Args& a) -> Results { return contiguous(a.x()); }},
      {"clone", [](const Args& a) -> Results { return clone(a.x()); }},
      {"squeeze", squeeze_of},
      {"unsqueeze", [](const Args& a) -> Results { return unsqueeze(a.x(), a.integer(1, "dim")); }},
      {"expand", [](const Args& a) -> Results { return expand(a.x(), a.shape(1, "size")); }},
      {"slice", slice_of},
      {"select", [](const Args& a) -> Results { return select(a.x(), a.integer(1, "dim"), a.integer(2, "index")); }},
      {"narrow",
       [](const Args& a) -> Results {
         return narrow(a.x(), a.integer(1, "dim"), a.integer(2, "start"), a.integer(3, "length"));
       }},
      {"as_strided", as_strided_of},
      {"cat", [](const Args& a) -> Results { return cat(a.tensors(0, "tensors"), a.integer(1, "dim", 0)); }},
      {"stack", [](const Args& a) -> Results { return stack(a.tensors(0, "tensors"), a.integer(1, "dim", 0)); }},
      {"split", split_of},
      {"chunk", [](const Args& a) -> Results { return chunk(a.x(), a.integer(1, "chunks"), a.integer(2, "dim", 0)); }},
      {"index", [](const Args& a) -> Results { return index(a.x(), a.indices(1, "indices")); }},
      {"index_put_", index_put_of},
      {"nonzero", nonzero_of},
      {"index_select", [](const Args& a) -> Results { return index_select(a.x(), a.integer(1, "dim"), a.tensor(2, "index")); }},
      {"gather", [](const Args& a) -> Results { return gather(a.x(), a.integer(1, "dim"), a.tensor(2, "index")); }},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace onestep::programs
