#include "autograd/dot.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "autograd/node.h"
#include "base/error.h"

namespace onestep {
namespace {

/// Every node that `root` was computed from, oldest first.
std::vector<const Node*> history(const Node* root) {
  std::vector<const Node*> nodes{root};
  std::unordered_map<const Node*, bool> seen{{root, true}};
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& input : nodes[i]->inputs) {
      if (input && seen.emplace(input.get(), true).second) nodes.push_back(input.get());
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  return nodes;
}

/// Text between the quotes of a DOT string.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string to_dot(const Tensor& result, const std::vector<std::pair<std::string, Tensor>>& names) {
  ONESTEP_CHECK(GradError, result.requires_grad(), "to_dot: a tensor of shape ", result.shape(),
                " that does not require grad has no graph (compute it from a tensor that does, outside NoGradGuard)");
  std::unordered_map<const Node*, std::string> name_of;
  for (const auto& [name, tensor] : names) {
    if (tensor.requires_grad()) name_of.emplace(tensor.node().get(), name);
  }
  std::ostringstream out;
  out << "digraph onestep {\n  rankdir=TB;\n  node [fontname=\"sans-serif\", fontsize=10];\n";
  std::unordered_map<const Node*, size_t> number;
  for (const Node* node : history(result.node().get())) {
    const size_t id = number.emplace(node, number.size()).first->second;
    const auto named = name_of.find(node);
    const std::string label = named != name_of.end() ? named->second : node->is_leaf() ? "leaf" : node->name;
    out << "  n" << id << " [label=\"" << escaped(label) << "\\n"
        << node->shape << "\", " << (node->is_leaf() ? "shape=box, style=filled, fillcolor=\"#dbe9f6\"" : "shape=ellipse")
        << "];\n";
    for (const auto& input : node->inputs) {
      if (input) out << "  n" << number.at(input.get()) << " -> n" << id << ";\n";
    }
  }
  out << "}\n";
  return out.str();
}

}  // namespace onestep
