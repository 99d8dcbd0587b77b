#pragma once
// Matrices as pictures: SVG without scripts or fonts of its own, readable on light and dark backgrounds.
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace onestep::book {

/// A matrix [rows, columns] as coloured cells: the darker, the larger; negative numbers have a colour of their own, -inf and
/// NaN stand out.
struct HeatMap {
  std::string title;                                 ///< Above it.
  Tensor values;                                     ///< What the colours show.
  std::vector<std::string> rows = {}, columns = {};  ///< Labels; may be empty.
  std::vector<std::string> texts = {};               ///< Text of the cells, row by row, instead of the numbers.
  int decimals = 2;                                  ///< Of the numbers.
  double largest = 0;                                ///< The number of the full colour; 0: the largest one of `values`.
};

/// The panels side by side as one SVG document; `description` is its text for screen readers.
std::string heat_maps_svg(const std::vector<HeatMap>& panels, const std::string& description);

}  // namespace onestep::book
