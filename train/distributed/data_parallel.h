#pragma once
// Data-parallel training: every rank has the whole model and computes some of a step's micro-batches; each owns a slice of the
// parameters, whose gradient it sums and which it updates.
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "optim/optimizer.h"
#include "train/distributed/communicator.h"
#include "train/distributed/parameter_shards.h"

namespace onestep::train {

/// The gradients, optimizer state and parameters of the ranks of one run. A single process owns everything and sends nothing.
class DataParallel {
 public:
  /// `groups` are the parameters of `model` that require grad, in the order of the optimizer; `bucket_bytes` travel at a time.
  DataParallel(std::shared_ptr<Communicator> communicator, nn::Module& model, std::vector<optim::ParameterGroup> groups,
               int64_t bucket_bytes);

  /// The groups, with the part of each parameter that this rank owns in place of the parameter: what its optimizer updates.
  std::vector<optim::ParameterGroup> owned_groups() const;

  /// Forgets all gradients.
  void zero_grad();
  /// Does `backward` and adds the gradients of every rank that `contributes`, in the order of ranks. Buckets travel while the
  /// backward pass continues, and a gradient is forgotten as soon as it has been sent. Called for one micro-batch of every rank
  /// at a time, it gives the sum of a step's micro-batches in their order, one by one, whatever the number of ranks.
  void reduce_gradients(const std::vector<bool>& contributes, const std::function<void()>& backward);
  /// Multiplies the summed gradient.
  void scale_gradients(double factor);
  /// optim::clip_grad_norm_ on the summed gradient of all parameters: the same bits.
  double clip_grad_norm_(double max_norm);
  /// Of the summed gradient of each parameter, in the model's order, every n-th element, so that they are at most `most`; on
  /// every rank. None of a parameter without a gradient.
  std::vector<std::vector<double>> sample_gradients(int64_t most);
  /// Gives every rank what the owners have updated.
  void gather_parameters();

  /// Optimizer::state_dict() of all ranks together, on the root; elsewhere empty.
  nn::NamedTensors optimizer_state(const optim::Optimizer& optimizer, int64_t steps) const;
  /// Gives every rank its part of the root's state after so many steps. Throws ConfigError as Optimizer::load_state_dict does.
  void load_optimizer_state(optim::Optimizer& optimizer, const nn::NamedTensors& state, int64_t steps);
  /// Gives every rank the root's tensors.
  void broadcast(const nn::NamedTensors& tensors);

  Communicator& communicator() const { return *communicator_; }

 private:
  /// A piece that this rank owns, as a leaf of its own that sees the parameter's elements.
  struct Shard {
    ParameterPiece piece;
    Tensor tensor;
  };
  void make_shards();
  /// How far the gradients of one bucket are on their way to their owners.
  struct BucketReduction {
    enum class State { waiting, in_flight, added };
    State state = State::waiting;
    size_t not_ready = 0;          // waiting: parameters whose gradient the backward pass still owes
    Tensor own;                    // in flight: this rank's gradient of the whole bucket
    std::vector<Tensor> received;  // and, by rank, the gradients of the part that this rank owns
    std::unique_ptr<Communicator::Transfer> transfer;
  };
  /// The reductions of all buckets in one call of reduce_gradients.
  struct Reductions {
    std::vector<BucketReduction> buckets;
    size_t started = 0;  // of them: every rank starts them in order
  };
  Reductions waiting_reductions() const;
  void advance(Reductions& reductions, const std::vector<bool>& contributes);
  void start(size_t bucket, BucketReduction& reduction, const std::vector<bool>& contributes);
  Tensor take_gradients(const Bucket& bucket);
  void finish(size_t bucket, BucketReduction& reduction);
  void set_shard_gradients();
  double grad_norm() const;
  size_t index_of(const Tensor& parameter) const { return index_of_leaf_.at(parameter.node().get()); }
  nn::NamedTensors in_groups() const;
  std::vector<ParameterPiece> pieces_of(size_t parameter) const;
  template <class Slots>
  auto& slot_of(Slots& slots, const ParameterPiece& piece) const;
  Tensor gather_state(const optim::Optimizer& optimizer, size_t parameter, size_t state) const;
  void scatter_state(optim::Optimizer& optimizer, size_t parameter, size_t state, const Tensor& full);
  size_t rank() const { return static_cast<size_t>(communicator_->rank()); }
  size_t ranks() const { return static_cast<size_t>(communicator_->size()); }
  bool alone() const { return ranks() == 1; }

  std::shared_ptr<Communicator> communicator_;
  nn::NamedTensors parameters_;  // that require grad
  std::vector<optim::ParameterGroup> groups_;
  std::vector<Bucket> buckets_;
  std::unordered_map<const Node*, size_t> index_of_leaf_;  // of each parameter
  std::vector<std::vector<size_t>> buckets_of_;            // by parameter
  std::vector<Tensor> sums_;   // by bucket: the summed gradient of the own pieces, one after the other, once there is one
  std::vector<Shard> shards_;  // in the order of the buckets; a single process: the parameters themselves
};

}  // namespace onestep::train
