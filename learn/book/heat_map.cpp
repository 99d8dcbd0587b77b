#include "learn/book/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace onestep::book {
namespace {

constexpr int kCellWidth = 44, kCellHeight = 26, kMargin = 16, kGap = 24, kCharacter = 7;
constexpr int kTitleHeight = 24, kColumnsHeight = 20;

using Color = std::array<double, 3>;
constexpr Color kNothing{243, 246, 250}, kPositive{8, 69, 148}, kNegative{166, 54, 3};

// Text outside the cells takes the colour that suits the card it is on.
constexpr const char* kStyle =
    "<style>\n"
    "text { font: 12px ui-sans-serif, system-ui, sans-serif; }\n"
    ".card { fill: #ffffff; stroke: #d0d7de; }\n"
    ".label { fill: #1f2328; font-size: 11px; }\n"
    ".title { font-weight: 600; font-size: 12px; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  .card { fill: #161b22; stroke: #3d444d; }\n"
    "  .label { fill: #e6edf3; }\n"
    "}\n"
    "</style>\n"
    "<defs><pattern id=\"masked\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
    "<rect width=\"6\" height=\"6\" fill=\"#e3e6ea\"/><rect width=\"2\" height=\"6\" fill=\"#c3c8ce\"/></pattern></defs>\n";

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return result;
}

/// `x`, `y`: the middle of the text (anchor `middle`) or its end (`end`).
std::string text_at(int x, int y, const std::string& anchor, const std::string& attributes, const std::string& text) {
  std::ostringstream out;
  out << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" " << attributes << '>' << escaped(text)
      << "</text>\n";
  return out.str();
}

/// From a pale background (0) to the full colour (`largest` in size).
Color color_of(double value, double largest) {
  const double strength = largest > 0 ? std::abs(value) / largest : 0;
  const Color& full = value < 0 ? kNegative : kPositive;
  Color color;
  for (size_t i = 0; i < 3; ++i) color[i] = kNothing[i] + strength * (full[i] - kNothing[i]);
  return color;
}

/// Relative luminance as WCAG 2 defines it: above 0.179 black has more contrast than white, and either has at least 4.5.
double luminance(const Color& color) {
  constexpr Color kWeights{0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double c = color[i] / 255;
    sum += kWeights[i] * (c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

std::string hex(const Color& color) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(std::lround(color[0])),
                static_cast<unsigned>(std::lround(color[1])), static_cast<unsigned>(std::lround(color[2])));
  return text;
}

/// An exact zero stands out from a small number.
std::string number(double value, int decimals) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return "0";
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string cell(int x, int y, double value, double largest, const std::string& text) {
  std::string fill = "url(#masked)", ink = "#4a5057";  // -inf: masked
  if (std::isnan(value)) {
    fill = "#ffd33d", ink = "#000000";
  } else if (!std::isinf(value)) {
    const Color color = color_of(value, largest);
    fill = hex(color);
    ink = luminance(color) > 0.179 ? "#000000" : "#ffffff";
  }
  std::ostringstream out;
  out << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << kCellWidth - 2 << "\" height=\"" << kCellHeight - 2
      << R"(" rx="3" fill=")" << fill << "\"/>\n";
  out << text_at(x + kCellWidth / 2 - 1, y + kCellHeight / 2 + 3, "middle", "fill=\"" + ink + "\"", text);
  return out.str();
}

double largest_number(const std::vector<double>& values) {
  double largest = 0;
  for (double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return largest;
}

int labels_width(const HeatMap& map) {
  size_t longest = 0;
  for (const std::string& label : map.rows) longest = std::max(longest, label.size());
  return longest == 0 ? 0 : static_cast<int>(longest) * kCharacter + 8;
}

/// The title may be wider than the cells.
int width_of(const HeatMap& map) {
  const int cells = labels_width(map) + static_cast<int>(map.values.size(1)) * kCellWidth;
  return std::max(cells, static_cast<int>(map.title.size()) * kCharacter);
}

int height_of(const HeatMap& map) {
  return kTitleHeight + (map.columns.empty() ? 0 : kColumnsHeight) + static_cast<int>(map.values.size(0)) * kCellHeight;
}

/// One panel with its top left corner at `left`, `top`.
std::string panel(const HeatMap& map, int left, int top) {
  std::string svg = text_at(left, top + 12, "start", "class=\"label title\"", map.title);
  const int x0 = left + labels_width(map), y0 = top + height_of(map) - static_cast<int>(map.values.size(0)) * kCellHeight;
  for (size_t j = 0; j < map.columns.size(); ++j) {
    const int middle = x0 + static_cast<int>(j) * kCellWidth + kCellWidth / 2 - 1;
    svg += text_at(middle, y0 - 6, "middle", "class=\"label\"", map.columns[j]);
  }
  const std::vector<double> values = map.values.to_vector<double>();
  const double largest = map.largest > 0 ? map.largest : largest_number(values);
  const auto columns = static_cast<size_t>(map.values.size(1));
  for (size_t k = 0; k < values.size(); ++k) {
    const int x = x0 + static_cast<int>(k % columns) * kCellWidth, y = y0 + static_cast<int>(k / columns) * kCellHeight;
    if (k % columns == 0 && !map.rows.empty())
      svg += text_at(x0 - 8, y + kCellHeight / 2 + 3, "end", "class=\"label\"", map.rows[k / columns]);
    svg += cell(x, y, values[k], largest, map.texts.empty() ? number(values[k], map.decimals) : map.texts[k]);
  }
  return svg;
}

}  // namespace

std::string heat_maps_svg(const std::vector<HeatMap>& panels, const std::string& description) {
  int width = 2 * kMargin - kGap, height = 0;
  for (const HeatMap& map : panels) {
    width += width_of(map) + kGap;
    height = std::max(height, height_of(map));
  }
  height += 2 * kMargin;
  std::ostringstream out;
  out << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << width << "\" height=\"" << height << "\" viewBox=\"0 0 "
      << width << ' ' << height << "\" role=\"img\">\n<title>" << escaped(description) << "</title>\n"
      << kStyle << R"(<rect class="card" x="0.5" y="0.5" width=")" << width - 1 << "\" height=\"" << height - 1
      << "\" rx=\"8\"/>\n";
  int left = kMargin;
  for (const HeatMap& map : panels) {
    out << panel(map, left, kMargin);
    left += width_of(map) + kGap;
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace onestep::book
