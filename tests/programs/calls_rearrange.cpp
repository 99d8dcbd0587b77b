#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

Results repeat_interleave_of(const Args& a) {
  const std::optional<int64_t> dim = optional_dim(a, 2, "dim");
  if (a.is_tensor(1, "repeats")) return repeat_interleave(a.x(), a.tensor(1, "repeats"), dim);
  return repeat_interleave(a.x(), a.integer(1, "repeats"), dim);
}

Results tensor_split_of(const Args& a) {
  if (a.is_list(1, "indices_or_sections"))
    return tensor_split(a.x(), a.integers(1, "indices_or_sections"), a.integer(2, "dim", 0));
  return tensor_split(a.x(), a.integer(1, "indices_or_sections"), a.integer(2, "dim", 0));
}

template <Tensor (*op)(TensorList)>
Results joined(const Args& a) {
  return op(a.tensors(0, "tensors"));
}

Results tensordot_of(const Args& a) {
  if (!a.is_list(2, "dims")) return tensordot(a.x(), a.tensor(1, "other"), a.integer(2, "dims", 2));
  const auto dims = a.values<std::vector<int64_t>>(2, "dims");
  return tensordot(a.x(), a.tensor(1, "other"), Shape(dims.at(0)), Shape(dims.at(1)));
}

Results meshgrid_of(const Args& a) {
  return meshgrid(a.tensors(0, "tensors"),
                  a.text(kKeywordOnly, "indexing", "ij") == "xy" ? GridIndexing::xy : GridIndexing::ij);
}

template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar)>
Results added_product(const Args& a) {
  const auto factor = [&](const char* name) { return a.has(kKeywordOnly, name) ? a.scalar(kKeywordOnly, name) : Scalar(1); };
  return op(a.x(), a.tensor(1, "a"), a.tensor(2, "b"), factor("beta"), factor("alpha"));
}

Results rot90_of(const Args& a) {
  return rot90(a.x(), a.integer(1, "k", 1), a.has(2, "dims") ? a.shape(2, "dims") : Shape{0, 1});
}

}  // namespace

void add_rearrange_calls(CallTable& table) {
  const CallTable rows = {
      {"view_as", tensors<view_as>},
      {"reshape_as", tensors<reshape_as>},
      {"expand_as", tensors<expand_as>},
      {"broadcast_to", [](const Args& a) -> Results { return broadcast_to(a.x(), a.shape(1, "size")); }},
      {"ravel", unary<ravel>},
      {"unflatten", [](const Args& a) -> Results { return unflatten(a.x(), a.integer(1, "dim"), a.shape(2, "sizes")); }},
      {"swapaxes", [](const Args& a) -> Results { return swapaxes(a.x(), a.integer(1, "axis0"), a.integer(2, "axis1")); }},
      {"swapdims", [](const Args& a) -> Results { return swapdims(a.x(), a.integer(1, "dim0"), a.integer(2, "dim1")); }},
      {"movedim",
       [](const Args& a) -> Results { return movedim(a.x(), Shape(a.list(1, "source")), Shape(a.list(2, "destination"))); }},
      {"atleast_1d", unary<atleast_1d>},
      {"atleast_2d", unary<atleast_2d>},
      {"atleast_3d", unary<atleast_3d>},
      {"repeat", [](const Args& a) -> Results { return repeat(a.x(), a.shape(1, "repeats")); }},
      {"tile", [](const Args& a) -> Results { return tile(a.x(), a.shape(1, "dims")); }},
      {"repeat_interleave", repeat_interleave_of},
      {"flip", [](const Args& a) -> Results { return flip(a.x(), a.shape(1, "dims")); }},
      {"fliplr", unary<fliplr>},
      {"flipud", unary<flipud>},
      {"roll", [](const Args& a) -> Results { return roll(a.x(), Shape(a.list(1, "shifts")), Shape(a.list(2, "dims"))); }},
      {"rot90", rot90_of},
      {"unbind", [](const Args& a) -> Results { return unbind(a.x(), a.integer(1, "dim", 0)); }},
      {"tensor_split", tensor_split_of},
      {"meshgrid", meshgrid_of},
      {"hstack", joined<hstack>},
      {"vstack", joined<vstack>},
      {"dstack", joined<dstack>},
      {"column_stack", joined<column_stack>},
      {"diagonal",
       [](const Args& a) -> Results {
         return diagonal(a.x(), a.integer(1, "offset", 0), a.integer(2, "dim1", 0), a.integer(3, "dim2", 1));
       }},
      {"diag_embed",
       [](const Args& a) -> Results {
         return diag_embed(a.x(), a.integer(1, "offset", 0), a.integer(2, "dim1", -2), a.integer(3, "dim2", -1));
       }},
      {"diag", [](const Args& a) -> Results { return diag(a.x(), a.integer(1, "diagonal", 0)); }},
      {"unfold",
       [](const Args& a) -> Results {
         return unfold(a.x(), a.integer(1, "dimension"), a.integer(2, "size"), a.integer(3, "step"));
       }},
      {"mm", tensors<mm>},
      {"mv", tensors<mv>},
      {"bmm", tensors<bmm>},
      {"outer", tensors<outer>},
      {"addmm", added_product<addmm>},
      {"addmv", added_product<addmv>},
      {"baddbmm", added_product<baddbmm>},
      {"tensordot", tensordot_of},
      {"kron", tensors<kron>},
      {"cross", [](const Args& a) -> Results { return cross(a.x(), a.tensor(1, "other"), a.integer(2, "dim", -1)); }},
      {"trace", unary<trace>},
      {"count_nonzero", [](const Args& a) -> Results { return count_nonzero(a.x(), a.shape(1, "dim")); }},
      {"nansum", over_dims<nansum>},
      {"nanmean", over_dims<nanmean>},
      {"dist", [](const Args& a) -> Results { return dist(a.x(), a.tensor(1, "other"), a.real(2, "p", 2)); }},
      {"diff",
       [](const Args& a) -> Results {
         return diff(a.x(), a.integer(1, "n", 1), a.integer(2, "dim", -1), a.tensor(3, "prepend"), a.tensor(4, "append"));
       }},
  };
  for (const auto& [name, call] : rows) table[name] = call;
}

}  // namespace onestep::programs
