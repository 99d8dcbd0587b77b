#pragma once
// How tensors are printed.
#include <cstdint>
#include <optional>

namespace onestep {

/// torch.set_printoptions: digits after the point, more elements than `threshold` are summarised to `edge_items` at both ends
/// of each dim, characters a line; whether numbers have exponents, if not by their size.
struct PrintOptions {
  int precision = 4;
  int64_t threshold = 1000, edge_items = 3, line_width = 80;
  std::optional<bool> scientific = {};
};
/// Those of the process; not for changing while another thread prints.
PrintOptions& print_options();

}  // namespace onestep
