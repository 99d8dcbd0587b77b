#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "nn/module.h"

namespace onestep::nn {

/// Parameters named 0, 1, 2, ... (torch.nn.ParameterList).
class ParameterList : public Module {
 public:
  ParameterList() = default;
  explicit ParameterList(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) append(tensor);
  }
  /// The tensor becomes a leaf that requires grad. Throws what requires_grad_ throws.
  void append(Tensor tensor) { items_.push_back(tensor.requires_grad_()); }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  /// The parameter at `i`, from 0; throws ShapeError outside the list.
  const Tensor& operator[](int64_t i) const {
    ONESTEP_CHECK(ShapeError, i >= 0 && i < size(), "ParameterList: index ", i, " is out of range for ", size(), " parameters");
    return items_[static_cast<size_t>(i)];
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  std::string name() const override { return "ParameterList"; }
  void visit(Visitor& visitor) override {
    for (size_t i = 0; i < items_.size(); ++i) visitor.parameter(std::to_string(i), items_[i]);
  }
  /// As PyTorch prints it: the dtype and the sizes of each.
  std::string repr() const override {
    std::ostringstream text;
    text << "ParameterList(";
    for (size_t i = 0; i < items_.size(); ++i) {
      text << (i == 0 ? "\n" : "") << "    (" << i << "): Parameter containing: [torch." << items_[i].dtype() << " of size ";
      for (int d = 0; d < items_[i].dim(); ++d) text << (d > 0 ? "x" : "") << items_[i].size(d);
      text << "]\n";
    }
    text << ")";
    return text.str();
  }

 private:
  std::vector<Tensor> items_;
};

}  // namespace onestep::nn
