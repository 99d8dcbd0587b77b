#include "autograd/checkpoint.h"

#include <memory>
#include <string_view>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/node.h"
#include "autograd/recompute.h"

namespace onestep {
namespace {
thread_local SavedTaker* active_taker = nullptr;
}  // namespace

SavedTaker* SavedTaker::active() { return active_taker; }
SavedTaker* SavedTaker::set_active(SavedTaker* taker) { return std::exchange(active_taker, taker); }

namespace autograd {
namespace {

/// Sets a taker in its scope.
class TakerGuard {
 public:
  explicit TakerGuard(SavedTaker* taker) : outer_(SavedTaker::set_active(taker)) {}
  ~TakerGuard() { SavedTaker::set_active(outer_); }
  TakerGuard(const TakerGuard&) = delete;
  TakerGuard& operator=(const TakerGuard&) = delete;

 private:
  SavedTaker* outer_;
};

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// One checkpointed call: what it takes to run it again, and the nodes that wait for what they saved.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  Segment(Function fn, const std::vector<Tensor>& inputs, Generator& generator)
      : fn_(std::move(fn)), generator_(generator), before_(generator), autocast_(autocast_enabled()) {
    for (const Tensor& input : inputs) {
      inputs_.push_back(input.defined() ? input.values() : input);
      versions_.push_back(input.defined() ? input.version() : 0);
      require_grad_.push_back(input.defined() && input.requires_grad());
    }
  }

  std::vector<Tensor> run_first(const std::vector<Tensor>& inputs) {
    class First : public SavedTaker {
     public:
      explicit First(Segment& segment) : segment_(segment) {}
      void take(Node& node) override { segment_.drop(node); }

     private:
      Segment& segment_;
    } first(*this);
    const TakerGuard guard(&first);
    return fn_(inputs);
  }

 private:
  struct Waiting {
    Node* node;  // null once it is gone
    size_t saved;
  };

  /// Takes away what `node` saved.
  void drop(Node& node) {
    nodes_.push_back({node.saved.empty() ? nullptr : &node, node.saved.size()});
    if (node.saved.empty()) return;
    node.saved.clear();
    if (!node.extras) node.extras = std::make_unique<Node::Extras>();
    const std::shared_ptr<Segment> self(this->shared_from_this());
    const std::shared_ptr<void> alive(nullptr, [self, at = nodes_.size() - 1](void*) { self->nodes_[at].node = nullptr; });
    node.extras->recompute = [self, alive] { self->run_again(); };
  }

  /// Gives the nodes what those of a second run save.
  void run_again() {
    class Second : public SavedTaker {
     public:
      explicit Second(Segment& segment) : segment_(segment) {}
      void take(Node& node) override { segment_.give(next_++, node); }
      size_t next_ = 0;

     private:
      Segment& segment_;
    } second(*this);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ONESTEP_CHECK(GradError, !inputs_[i].defined() || inputs_[i].version() == versions_[i],
                    "checkpoint: an input was changed in place since: shape ", inputs_[i].shape(),
                    " (clone it before the change)");
      inputs.push_back(inputs_[i].defined() ? inputs_[i].detach().requires_grad_(require_grad_[i]) : Tensor());
    }
    const Generator now = std::exchange(generator_, before_);
    try {
      const EnableGradGuard recorded;
      const AutocastGuard as_before(autocast_);
      const Bf16OrderGuard order(order_);
      const TakerGuard guard(&second);
      fn_(inputs);
    } catch (...) {
      generator_ = now;
      throw;
    }
    generator_ = now;
    ONESTEP_CHECK(GradError, second.next_ == nodes_.size(), "checkpoint: the function recorded ", second.next_,
                  " ops when it ran again, not ", nodes_.size(), " (it must do the same both times)");
  }

  void give(size_t at, Node& again) {
    Node* const node = at < nodes_.size() ? nodes_[at].node : nullptr;
    const bool same = at < nodes_.size() && nodes_[at].saved == again.saved.size() &&
                      (!node || (node->shape == again.shape && std::string_view(node->name) == again.name));
    ONESTEP_CHECK(GradError, same, "checkpoint: the function recorded ", again.name, " of shape ", again.shape, " as op ", at,
                  " when it ran again (it must do the same both times)");
    if (again.saved.empty() || !node || !node->extras || !node->extras->recompute) return;
    for (Node::Saved& saved : again.saved) node->saved.emplace_back(std::move(saved));
    again.saved.clear();
    node->extras->recompute = nullptr;
  }

  Function fn_;
  Generator& generator_;
  Generator before_;
  bool autocast_;
  Bf16Order order_ = bf16_order();
  std::vector<Tensor> inputs_;
  std::vector<uint32_t> versions_;
  std::vector<bool> require_grad_;
  std::vector<Waiting> nodes_;
};

}  // namespace

std::vector<Tensor> checkpoint(Function fn, const std::vector<Tensor>& inputs, Generator& generator) {
  if (!grad_enabled()) return fn(inputs);
  return std::make_shared<Segment>(std::move(fn), inputs, generator)->run_first(inputs);
}

Tensor checkpoint(std::function<Tensor(const Tensor&)> fn, const Tensor& input, Generator& generator) {
  return checkpoint([fn = std::move(fn)](const std::vector<Tensor>& in) { return std::vector<Tensor>{fn(in[0])}; }, {input},
                    generator)[0];
}

}  // namespace autograd
}  // namespace onestep
