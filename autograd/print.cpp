// Printing as torch/_tensor_str.py does it: 4 decimals, one width for all elements, brackets by rank.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/creation.h"
#include "autograd/dot.h"
#include "autograd/node.h"
#include "autograd/ops_index.h"
#include "autograd/print_options.h"
#include "autograd/tensor.h"

namespace onestep {
namespace {

constexpr int64_t kGap = -1;

/// The indices along a dim that are printed, with kGap where "..." is printed.
std::vector<int64_t> shown(int64_t size, bool summarize) {
  const int64_t edge = print_options().edge_items;
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < size; ++i) {
    const bool skip = summarize && size > 2 * edge && i == edge;
    if (skip) i = size - edge;
    if (skip) indices.push_back(kGap);
    indices.push_back(i);
  }
  return indices;
}

template <class T>
void collect(const Tensor& x, bool summarize, int dim, Shape& index, std::vector<T>& values) {
  if (dim == x.dim()) {
    values.push_back(x.at<T>(index));
    return;
  }
  for (int64_t i : shown(x.shape()[dim], summarize)) {
    if (i == kGap) continue;
    index[dim] = i;
    collect(x, summarize, dim + 1, index, values);
  }
}

/// The printed elements in row-major order.
template <class T>
std::vector<T> shown_values(const Tensor& x, bool summarize) {
  std::vector<T> values;
  Shape index = Shape::filled(x.dim(), 0);
  collect(x, summarize, 0, index, values);
  return values;
}

std::string printed(const char* format, int precision, double value) {
  if (std::isnan(value)) return "nan";  // printf would show the sign
  char text[400];
  const int length = std::snprintf(text, sizeof text, format, precision, value);
  return std::string(text, static_cast<size_t>(length));
}

/// Elements as text, right-aligned to `width` (zeros and non-finite numbers may be wider: they do not count, as in PyTorch).
struct Cells {
  std::vector<std::string> text;
  size_t width = 1;

  void align() {
    for (std::string& t : text) t.insert(0, width > t.size() ? width - t.size() : 0, ' ');
  }
};

Cells floating_cells(const std::vector<double>& values) {
  double smallest = INFINITY, largest = 0;
  bool integers = true;
  const auto counts = [](double v) { return std::isfinite(v) && v != 0; };
  for (double v : values) {
    if (!counts(v)) continue;
    smallest = std::min(smallest, std::abs(v));
    largest = std::max(largest, std::abs(v));
    integers = integers && v == std::ceil(v);
  }
  const bool spread = largest > 0 && (largest / smallest > 1000.0 || largest > 1.0e8 || smallest < 1.0e-4);
  const bool scientific = print_options().scientific.value_or(spread);
  const char* format = scientific ? "%.*e" : "%.*f";
  const int precision = integers && !scientific ? 0 : print_options().precision;
  const bool point = integers && !scientific;  // 2 prints as 2.
  Cells cells;
  for (double v : values) {
    cells.text.push_back(printed(format, precision, v) + (point && std::isfinite(v) ? "." : ""));
    if (counts(v)) cells.width = std::max(cells.width, cells.text.back().size());
  }
  return cells;
}

Cells make_cells(const Tensor& x, bool summarize) {
  Cells cells;
  if (x.is_floating()) {
    cells = floating_cells(shown_values<double>(x, summarize));
  } else {
    for (int64_t v : shown_values<int64_t>(x, summarize)) {
      cells.text.push_back(x.dtype() != DType::boolean ? std::to_string(v) : v ? "True" : "False");
      cells.width = std::max(cells.width, cells.text.back().size());
    }
  }
  cells.align();
  return cells;
}

/// Writes the brackets; the cells are used up in order.
class Writer {
 public:
  Writer(const Tensor& x, bool summarize) : x_(x), summarize_(summarize), cells_(make_cells(x, summarize)) {}

  std::string write(int dim, int64_t indent) {
    if (x_.dim() == 0) return cells_.text[0];
    const bool innermost = dim == x_.dim() - 1;
    const size_t width = cells_.width + 2;
    const auto room = static_cast<size_t>(std::max<int64_t>(0, print_options().line_width - indent));
    const size_t per_line = innermost ? std::max<size_t>(1, room / width) : 1;
    std::string new_line = ",";
    new_line.append(static_cast<size_t>(innermost ? 1 : x_.dim() - dim - 1), '\n');
    new_line.append(static_cast<size_t>(indent + 1), ' ');
    std::string text = "[";
    size_t count = 0;
    for (int64_t i : shown(x_.shape()[dim], summarize_)) {
      if (count > 0) text += count % per_line == 0 ? new_line : ", ";
      ++count;
      if (i == kGap)
        text += innermost ? " ..." : "...";
      else
        text += innermost ? cells_.text[next_++] : write(dim + 1, indent + 1);
    }
    return text + "]";
  }

 private:
  const Tensor& x_;
  const bool summarize_;
  const Cells cells_;
  size_t next_ = 0;
};

/// What PyTorch's print calls the op that made a tensor, and the number of its overload: sum over dims -> {"sum", 1}
std::pair<std::string_view, int> pytorch_op(const Node& node) {
  const std::string_view op = node.name;
  if (op == "matmul") return {node.shape.rank() == 2 ? "mm" : "bmm", 0};
  if (op == "linear") return {node.inputs[2] ? "addmm" : "mm", 0};
  if (op == "sum" || op == "mean" || op == "prod") return {op, node.shape.empty() ? 0 : 1};
  if (op == "max" || op == "min") return {op, node.shape.empty() ? 1 : 0};
  if (op == "clamp") return {op, node.inputs.size() == 1 ? 1 : 0};
  if (op == "pow") return {op, node.inputs.size() == 2 ? 1 : 0};
  if (op == "cross_entropy") return {"nll_loss", 0};
  if (op == "layer_norm") return {"native_layer_norm", 0};
  if (op == "reshape") return {"view", 0};
  if (op == "to") return {"to_copy", 0};
  return {op, 0};
}

}  // namespace

std::string grad_fn_name(const Node& node) {
  if (node.is_leaf()) return "AccumulateGrad";
  if (std::string_view(node.name).ends_with("Backward")) return node.name;  // of a custom op
  const auto [op, overload] = pytorch_op(node);
  std::string name;
  bool upper = true;
  for (char c : op) {
    if (c != '_') name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return name + "Backward" + std::to_string(overload);
}

namespace {

std::vector<std::string> suffixes(const Tensor& x) {
  std::vector<std::string> parts;
  std::ostringstream size;
  const bool is_empty = x.numel() == 0;
  if (is_empty && x.dim() != 1) {
    for (int64_t n : x.shape()) size << (size.tellp() > 0 ? ", " : "size=(") << n;
    parts.push_back(size.str() + ")");
  }
  const bool is_implied = x.dtype() == DType::int64 || x.dtype() == DType::boolean;  // by elements
  if (x.dtype() != default_dtype() && (is_empty || !is_implied)) parts.push_back("dtype=torch." + std::string(name(x.dtype())));
  if (!x.is_leaf())
    parts.push_back("grad_fn=<" + grad_fn_name(*x.node()) + ">");
  else if (x.requires_grad())
    parts.push_back("requires_grad=True");
  return parts;
}

}  // namespace

PrintOptions& print_options() {
  static PrintOptions options;
  return options;
}

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  const std::string prefix = "tensor(";
  const auto indent = static_cast<int64_t>(prefix.size());
  const bool summarize = x.numel() > print_options().threshold;
  std::string text = prefix + (x.numel() == 0 ? "[]" : Writer(x, summarize).write(0, indent));
  // PyTorch counts the last line two longer than it is, and so must we to wrap alike.
  size_t line = text.size() - (text.rfind('\n') + 1) + 2;
  for (const std::string& suffix : suffixes(x)) {
    const bool wraps = static_cast<int64_t>(line + suffix.size() + 2) > print_options().line_width;
    text += wraps ? ",\n       " : ", ";
    text += suffix;
    line = wraps ? prefix.size() + suffix.size() : line + suffix.size() + 2;
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace onestep
