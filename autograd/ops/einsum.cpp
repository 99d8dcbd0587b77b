// Sums of products over named dims. Operands are taken from left to right, two at a time, and each pair is one (batched) matrix
// product of views: nothing here has a gradient rule of its own.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "autograd/ops/common.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

constexpr const char* kOp = "einsum";
constexpr const char* kEllipsis = "...";

/// A tensor whose dims have names of one character: letters, and digits for those of an ellipsis ('0' is the last).
struct Named {
  Tensor tensor;
  std::string dims;

  int place(char dim) const { return static_cast<int>(dims.find(dim)); }
  bool has(char dim) const { return dims.find(dim) != std::string::npos; }
  int64_t size(char dim) const { return tensor.shape()[place(dim)]; }
};

/// What an equation asks for.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

/// The terms between commas.
std::vector<std::string> terms_of(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  return terms;
}

/// Replaces the ellipsis of a term by the names of `count` dims: "b...k" -> "b10k".
std::string expanded(std::string term, int64_t count) {
  const size_t at = term.find(kEllipsis);
  if (at == std::string::npos) return term;
  std::string digits;
  for (int64_t i = count - 1; i >= 0; --i) digits += static_cast<char>('0' + i);
  return term.replace(at, 3, digits);
}

/// Letters and at most one ellipsis; returns the number of letters.
int64_t checked_letters(std::string_view equation, std::string term) {
  if (const size_t at = term.find(kEllipsis); at != std::string::npos) term.erase(at, 3);
  for (const char c : term)
    ONESTEP_CHECK(ConfigError, ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'), kOp, ": '", c, "' in \"", equation,
                  "\" is no subscript (letters, at most one ... a term, commas and one ->)");
  return static_cast<int64_t>(term.size());
}

/// The result of an equation without `->`: the ellipsis, then every letter that occurs once, in the order of ASCII.
std::string implied_output(const std::vector<std::string>& inputs, int64_t ellipsis) {
  std::map<char, int> counts;
  for (const std::string& input : inputs)
    for (const char c : input) ++counts[c];
  std::string output = expanded(kEllipsis, ellipsis);
  for (const auto& [c, count] : counts)
    if (count == 1 && c >= 'A') output += c;
  return output;
}

Equation parse(std::string_view equation, TensorList operands) {
  std::string text(equation);
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  Equation parsed{terms_of(text.substr(0, arrow)), {}};
  ONESTEP_CHECK(ConfigError, parsed.inputs.size() == operands.size(), kOp, ": \"", equation, "\" names ", parsed.inputs.size(),
                " operands: got ", operands.size());
  int64_t ellipsis = 0;
  const Tensor* operand = operands.begin();
  for (std::string& term : parsed.inputs) {
    const int64_t letters = checked_letters(equation, term), rest = operand->dim() - letters;
    ONESTEP_CHECK(ShapeError, rest == 0 || (rest > 0 && term.find(kEllipsis) != std::string::npos), kOp, ": \"", term,
                  "\" names ", letters, " dims of an operand of shape ", operand->shape());
    term = expanded(term, rest);
    if (term.size() > static_cast<size_t>(letters)) ellipsis = std::max(ellipsis, rest);
    ++operand;
  }
  if (arrow == std::string::npos) {
    parsed.output = implied_output(parsed.inputs, ellipsis);
    return parsed;
  }
  const std::string output = text.substr(arrow + 2);
  checked_letters(equation, output);
  parsed.output = expanded(output, ellipsis);
  return parsed;
}

/// The size of every dim: 1 in one operand goes with any size in another.
void check_named_sizes(std::string_view equation, const Equation& e, TensorList operands) {
  std::map<char, int64_t> sizes;
  const Tensor* operand = operands.begin();
  for (const std::string& dims : e.inputs) {
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t size = operand->shape()[static_cast<int>(i)];
      const int64_t first = operand->shape()[static_cast<int>(dims.find(dims[i]))];  // within one operand nothing broadcasts
      int64_t& known = sizes.emplace(dims[i], size).first->second;
      ONESTEP_CHECK(ShapeError, size == first && (known == size || known == 1 || size == 1), kOp, ": \"", equation, "\": dim ",
                    dims[i], " has sizes ", size == first ? known : first, " and ", size);
      if (known == 1) known = size;
    }
    ++operand;
  }
  for (size_t i = 0; i < e.output.size(); ++i) {
    ONESTEP_CHECK(ConfigError, sizes.count(e.output[i]) == 1, kOp, ": \"", equation, "\": dim ", e.output[i],
                  " of the result is in no operand");
    ONESTEP_CHECK(ConfigError, e.output.find(e.output[i]) == i, kOp, ": \"", equation, "\": dim ", e.output[i],
                  " is twice in the result");
  }
}

/// x with its dims in this order.
Tensor permuted(const Named& x, const std::string& order) {
  Shape places;
  for (const char dim : order) places.push_back(x.place(dim));
  return order == x.dims ? x.tensor : permute(x.tensor, places);
}

/// One dim for each name: repeated ones become the diagonal, every (n + 1)-th element of [n, n].
Named diagonals(Named x) {
  for (size_t i = 0; i < x.dims.size(); ++i) {
    const size_t other = x.dims.find(x.dims[i], i + 1);
    if (other == std::string::npos) continue;
    const char dim = x.dims[i];
    const int64_t n = x.tensor.size(static_cast<int64_t>(i));
    x.tensor = flatten(transpose(transpose(x.tensor, static_cast<int64_t>(other), -1), static_cast<int64_t>(i), -2), -2, -1);
    x.tensor = slice(x.tensor, -1, 0, n * n, n + 1);
    std::swap(x.dims[other], x.dims.back());
    std::swap(x.dims[i], x.dims[x.dims.size() - 2]);
    x.dims.resize(x.dims.size() - 2);
    x.dims += dim;
    i = static_cast<size_t>(-1);  // from the start, since the dims have moved
  }
  return x;
}

/// x summed over the dims that are not in `kept`.
Named summed(const Named& x, const std::string& kept) {
  Shape gone;
  std::string rest;
  for (const char dim : x.dims) {
    if (kept.find(dim) == std::string::npos)
      gone.push_back(x.place(dim));
    else
      rest += dim;
  }
  return gone.empty() ? x : Named{sum(x.tensor, gone), rest};
}

/// x without the dims of size 1 that have another size in `other`: they repeat.
Named without_repeating(Named x, const Named& other) {
  for (const char dim : std::string(x.dims)) {
    if (!other.has(dim) || x.size(dim) != 1 || other.size(dim) == 1) continue;
    const int place = x.place(dim);
    x.tensor = squeeze(x.tensor, place);
    x.dims.erase(static_cast<size_t>(place), 1);
  }
  return x;
}

/// The sizes of some dims of x.
Shape sizes_of(const Named& x, const std::string& dims) {
  Shape sizes;
  for (const char dim : dims) sizes.push_back(x.size(dim));
  return sizes;
}

/// `lead`, then the sizes of two groups of dims as one each.
Shape matrix_shape(Shape lead, const Shape& rows, const Shape& cols) {
  lead.push_back(rows.numel());
  lead.push_back(cols.numel());
  return lead;
}

/// Sum of a b over the dims that are not in `kept`: [batch..., m, k] x [batch..., k, n], where batch are the kept dims of both,
/// k the others that both have, m and n those of one.
Named contracted(Named a, Named b, const std::string& kept) {
  a = summed(without_repeating(a, b), kept + b.dims);
  b = summed(without_repeating(b, a), kept + a.dims);
  std::string batch, m, k, n;
  for (const char dim : a.dims) (!b.has(dim) ? m : kept.find(dim) == std::string::npos ? k : batch) += dim;
  for (const char dim : b.dims)
    if (!a.has(dim)) n += dim;
  const Shape rows = sizes_of(a, m), inner = sizes_of(a, k), cols = sizes_of(b, n);
  Shape lead = sizes_of(a, batch), shape = lead;
  for (const int64_t size : rows) shape.push_back(size);
  for (const int64_t size : cols) shape.push_back(size);
  if (lead.rank() > kMaxRank - 2) lead = lead.numel();
  const DType dtype = promote_types(a.tensor.dtype(), b.tensor.dtype());  // a sum of integers is int64
  const Tensor left = reshape(permuted(a, batch + m + k), matrix_shape(lead, rows, inner));
  const Tensor right = reshape(permuted(b, batch + k + n), matrix_shape(lead, inner, cols));
  return {reshape(matmul(to(left, dtype), to(right, dtype)), shape), batch + m + n};
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList operands) {
  const Equation e = parse(equation, operands);
  for (const Tensor& x : operands) {
    ops::check_same_dtype(kOp, *operands.begin(), x);
    ONESTEP_CHECK(DTypeError, x.dtype() != DType::boolean, kOp, ": does not take bool (convert with to())");
  }
  check_named_sizes(equation, e, operands);
  Named result;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    std::string kept = e.output;
    for (size_t later = i + 1; later < e.inputs.size(); ++later) kept += e.inputs[later];
    const Named next = diagonals({operands.begin()[i], e.inputs[i]});
    result = i == 0 ? summed(next, kept) : contracted(result, next, kept);
  }
  return permuted(summed(result, e.output), e.output);
}

}  // namespace onestep
