#include "nn/module_list.h"

#include <sstream>

namespace onestep::nn {

std::string list_repr(const std::string& name, const std::vector<std::string>& items) {
  if (items.empty()) return name + "()";
  std::ostringstream text;
  text << name << "(";
  for (size_t first = 0, next = 0; first < items.size(); first = next) {
    while (next < items.size() && items[next] == items[first]) ++next;
    text << "\n  (" << first;
    if (next - first > 1) text << "-" << next - 1 << "): " << next - first << " x ";
    if (next - first == 1) text << "): ";
    text << indented(items[first]);
  }
  text << "\n)";
  return text.str();
}

}  // namespace onestep::nn
