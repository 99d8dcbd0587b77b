#include "train/distributed/data_parallel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "autograd/creation.h"
#include "autograd/grad_hook.h"
#include "autograd/node.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"

namespace onestep::train {
namespace {

/// Elements [begin, begin + count) of a contiguous tensor as bytes.
std::span<const std::byte> bytes_of(const Tensor& tensor, int64_t begin, int64_t count) {
  return dispatch(tensor.dtype(), [&]<class T>() {
    return std::as_bytes(std::span<const T>(tensor.data<T>() + begin, static_cast<size_t>(count)));
  });
}

std::span<std::byte> writable_bytes_of(Tensor& tensor, int64_t begin, int64_t count) {
  return dispatch(tensor.dtype(), [&]<class T>() {
    return std::as_writable_bytes(std::span<T>(tensor.mutable_data<T>() + begin, static_cast<size_t>(count)));
  });
}

void copy_elements(Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin, int64_t count) {
  const auto source = bytes_of(from, from_begin, count);
  if (count > 0) std::memcpy(writable_bytes_of(to, to_begin, count).data(), source.data(), source.size());
}

bool is_owned_by(const ParameterPiece& piece, size_t rank) { return piece.owner == static_cast<int>(rank); }

/// Where the run of each rank begins in a bucket, in elements; its pieces are in the order of owners.
std::vector<int64_t> run_starts(const Bucket& bucket, size_t ranks) {
  std::vector<int64_t> starts(ranks + 1, 0);
  for (const ParameterPiece& piece : bucket) starts[static_cast<size_t>(piece.owner) + 1] += piece.size();
  for (size_t r = 0; r < ranks; ++r) starts[r + 1] += starts[r];
  return starts;
}

nn::NamedTensors trained_parameters(nn::Module& model) {
  nn::NamedTensors list = model.named_parameters();
  std::erase_if(list, [](const auto& named) { return !named.second.requires_grad(); });
  return list;
}

}  // namespace

DataParallel::DataParallel(std::shared_ptr<Communicator> communicator, nn::Module& model,
                           std::vector<optim::ParameterGroup> groups, int64_t bucket_bytes)
    : communicator_(std::move(communicator)), parameters_(trained_parameters(model)), groups_(std::move(groups)) {
  std::vector<int64_t> sizes;
  for (const auto& [_, parameter] : parameters_) {
    index_of_leaf_[parameter.node().get()] = sizes.size();
    sizes.push_back(parameter.numel());
  }
  const int64_t bucket_elements = bucket_bytes / size_of(parameters_.front().second.dtype());
  buckets_ = deal_parameters(sizes, communicator_->size(), bucket_elements, optim::kNormChunk);
  sums_.resize(buckets_.size());
  buckets_of_.resize(parameters_.size());
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (const ParameterPiece& piece : buckets_[b]) {
      std::vector<size_t>& buckets = buckets_of_[piece.parameter];
      if (buckets.empty() || buckets.back() != b) buckets.push_back(b);  // a bucket may have several pieces of it
    }
  }
  make_shards();
}

void DataParallel::make_shards() {
  if (alone()) {
    for (size_t p = 0; p < parameters_.size(); ++p)
      shards_.push_back({{p, 0, parameters_[p].second.numel()}, parameters_[p].second});
    return;
  }
  for (const Bucket& bucket : buckets_) {
    for (const ParameterPiece& piece : bucket) {
      if (!is_owned_by(piece, rank())) continue;
      Tensor part = parameters_[piece.parameter].second.detach().flatten().slice(0, piece.begin, piece.end);
      shards_.push_back({piece, part.requires_grad_()});
    }
  }
}

std::vector<optim::ParameterGroup> DataParallel::owned_groups() const {
  std::vector<optim::ParameterGroup> owned;
  for (const optim::ParameterGroup& group : groups_) {
    optim::ParameterGroup& parts = owned.emplace_back(optim::ParameterGroup{{}, group.weight_decay});
    for (const Tensor& parameter : group.parameters) {
      for (const Shard& shard : shards_)
        if (shard.piece.parameter == index_of(parameter)) parts.parameters.push_back(shard.tensor);
    }
  }
  return owned;
}

// ---- gradients

void DataParallel::zero_grad() {
  for (auto& [_, parameter] : parameters_) parameter.zero_grad();
  for (Shard& shard : shards_) shard.tensor.zero_grad();
  std::fill(sums_.begin(), sums_.end(), Tensor());
}

void DataParallel::reduce_gradients(const std::vector<bool>& contributes, const std::function<void()>& backward) {
  if (alone()) return backward();  // which adds to the gradients in the same order
  Reductions reductions = waiting_reductions();
  {
    const GradHook hook([&](const Node& leaf) {
      for (const size_t bucket : buckets_of_[index_of_leaf_.at(&leaf)]) --reductions.buckets[bucket].not_ready;
      advance(reductions, contributes);
    });
    backward();
  }
  for (BucketReduction& bucket : reductions.buckets) bucket.not_ready = 0;  // where no target counts there was no backward pass
  advance(reductions, contributes);
  for (size_t b = 0; b < buckets_.size(); ++b) finish(b, reductions.buckets[b]);
  set_shard_gradients();
}

DataParallel::Reductions DataParallel::waiting_reductions() const {
  Reductions reductions;
  reductions.buckets.resize(buckets_.size());
  for (const std::vector<size_t>& buckets : buckets_of_)
    for (const size_t bucket : buckets) ++reductions.buckets[bucket].not_ready;
  return reductions;
}

/// Starts what is ready, and adds what has arrived.
void DataParallel::advance(Reductions& reductions, const std::vector<bool>& contributes) {
  for (size_t& b = reductions.started; b < buckets_.size() && reductions.buckets[b].not_ready == 0; ++b)
    start(b, reductions.buckets[b], contributes);
  for (size_t b = 0; b < reductions.started; ++b) {
    BucketReduction& reduction = reductions.buckets[b];
    if (reduction.state == BucketReduction::State::in_flight && reduction.transfer->progress()) finish(b, reduction);
  }
}

/// The gradients of the bucket's pieces, one after the other, which the parameters then forget: [bucket elements]. 0 where
/// there is none, as where no target counts.
Tensor DataParallel::take_gradients(const Bucket& bucket) {
  Tensor all = zeros({run_starts(bucket, ranks()).back()}, parameters_.front().second.dtype());
  int64_t place = 0;
  for (const ParameterPiece& piece : bucket) {
    Tensor& parameter = parameters_[piece.parameter].second;
    if (parameter.grad().defined()) copy_elements(all, place, contiguous(parameter.grad()), piece.begin, piece.size());
    place += piece.size();
    if (piece.end == parameter.numel()) parameter.zero_grad();  // its last piece
  }
  return all;
}

void DataParallel::start(size_t bucket, BucketReduction& reduction, const std::vector<bool>& contributes) {
  const NoGradGuard no_grad;
  const std::vector<int64_t> starts = run_starts(buckets_[bucket], ranks());
  const int64_t owned = starts[rank() + 1] - starts[rank()];
  if (contributes[rank()]) reduction.own = take_gradients(buckets_[bucket]);
  reduction.received.resize(ranks());
  Communicator::Outgoing to(ranks());
  Communicator::Incoming from(ranks());
  for (size_t r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    if (reduction.own.defined()) to[r] = bytes_of(reduction.own, starts[r], starts[r + 1] - starts[r]);
    if (!contributes[r]) continue;
    reduction.received[r] = empty({owned}, parameters_.front().second.dtype());
    from[r] = writable_bytes_of(reduction.received[r], 0, owned);
  }
  if (reduction.own.defined()) reduction.received[rank()] = reduction.own.slice(0, starts[rank()], starts[rank() + 1]);
  reduction.transfer = communicator_->start(to, from);
  reduction.state = BucketReduction::State::in_flight;
}

/// Waits for what is in flight and adds it, in the order of ranks.
void DataParallel::finish(size_t bucket, BucketReduction& reduction) {
  if (reduction.state != BucketReduction::State::in_flight) return;
  const NoGradGuard no_grad;
  communicator_->wait(*reduction.transfer);
  Tensor& sum = sums_[bucket];
  for (const Tensor& part : reduction.received) {
    if (!part.defined()) continue;
    if (sum.defined())
      add_(sum, part);
    else
      sum = part.clone();
  }
  reduction = {};
  reduction.state = BucketReduction::State::added;
}

void DataParallel::set_shard_gradients() {
  auto shard = shards_.begin();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    int64_t place = 0;
    for (const ParameterPiece& piece : buckets_[b]) {
      if (!is_owned_by(piece, rank())) continue;
      if (sums_[b].defined()) shard->tensor.set_grad(sums_[b].slice(0, place, place + piece.size()));
      place += piece.size();
      ++shard;
    }
  }
}

void DataParallel::scale_gradients(double factor) {
  const NoGradGuard no_grad;
  for (const Shard& shard : shards_) {
    Tensor grad = shard.tensor.grad();
    if (grad.defined()) mul_(grad, factor);
  }
}

double DataParallel::grad_norm() const {
  const NoGradGuard no_grad;
  std::vector<double> mine;
  for (const Shard& shard : shards_) {
    const std::vector<double> chunks = optim::squared_sums(shard.tensor);
    mine.insert(mine.end(), chunks.begin(), chunks.end());
  }
  const std::vector<std::vector<double>> all = communicator_->all_gather(mine);
  std::vector<double> totals(parameters_.size());
  // Ascending within a parameter, as clip_grad_norm_ adds: the buckets hold its pieces in that order.
  std::vector<size_t> next(ranks(), 0);
  const auto add_piece = [&](const ParameterPiece& piece) {
    const auto owner = static_cast<size_t>(piece.owner);
    for (int64_t begin = 0; begin < piece.size(); begin += optim::kNormChunk)
      totals[piece.parameter] += all[owner][next[owner]++];
  };
  if (alone()) {
    for (const Shard& shard : shards_) add_piece(shard.piece);
  } else {
    for (const Bucket& bucket : buckets_) std::for_each(bucket.begin(), bucket.end(), add_piece);
  }
  double total = 0;
  for (const double part : totals) total += part;
  return std::sqrt(total);
}

double DataParallel::clip_grad_norm_(double max_norm) {
  const double norm = grad_norm(), factor = optim::clip_factor(max_norm, norm);
  if (factor < 1.0) scale_gradients(factor);
  return norm;
}

// ---- parameters and optimizer state

std::vector<std::vector<double>> DataParallel::sample_gradients(int64_t most) {
  const NoGradGuard no_grad;
  std::vector<double> mine;  // parameter, place among its samples, value
  for (const auto& [piece, tensor] : shards_) {
    const Tensor gradient = tensor.grad();
    if (!gradient.defined()) continue;
    const int64_t every = sampling_stride(parameters_[piece.parameter].second.numel(), most);
    const int64_t first = (piece.begin + every - 1) / every;
    if (first * every >= piece.end) continue;
    int64_t place = first;
    for (const double value : gradient.flatten().slice(0, first * every - piece.begin, piece.size(), every).to_vector<double>())
      mine.insert(mine.end(), {static_cast<double>(piece.parameter), static_cast<double>(place++), value});
  }
  std::vector<std::vector<double>> samples(parameters_.size());
  for (const std::vector<double>& theirs : communicator_->all_gather(mine)) {
    for (size_t i = 0; i + 2 < theirs.size(); i += 3) {
      std::vector<double>& of = samples[static_cast<size_t>(theirs[i])];
      const auto place = static_cast<size_t>(theirs[i + 1]);
      if (place >= of.size()) of.resize(place + 1);
      of[place] = theirs[i + 2];
    }
  }
  return samples;
}

void DataParallel::gather_parameters() {
  if (alone()) return;
  const NoGradGuard no_grad;
  const DType dtype = parameters_.front().second.dtype();
  for (const Bucket& bucket : buckets_) {
    const std::vector<int64_t> starts = run_starts(bucket, ranks());
    Tensor values = empty({starts.back()}, dtype);
    const auto walk = [&](auto&& visit) {
      int64_t place = 0;
      for (const ParameterPiece& piece : bucket) {
        visit(piece, place);
        place += piece.size();
      }
    };
    walk([&](const ParameterPiece& piece, int64_t place) {
      if (is_owned_by(piece, rank()))
        copy_elements(values, place, parameters_[piece.parameter].second, piece.begin, piece.size());
    });
    const auto own = bytes_of(values, starts[rank()], starts[rank() + 1] - starts[rank()]);
    Communicator::Incoming from(ranks());
    for (size_t r = 0; r < ranks(); ++r)
      if (r != rank()) from[r] = writable_bytes_of(values, starts[r], starts[r + 1] - starts[r]);
    communicator_->exchange(Communicator::Outgoing(ranks(), own), from);
    walk([&](const ParameterPiece& piece, int64_t place) {
      if (!is_owned_by(piece, rank()))
        copy_elements(parameters_[piece.parameter].second, piece.begin, values, place, piece.size());
    });
  }
}

void DataParallel::broadcast(const nn::NamedTensors& tensors) {
  if (alone()) return;
  const NoGradGuard no_grad;
  for (auto [_, tensor] : tensors) communicator_->broadcast(writable_bytes_of(tensor, 0, tensor.numel()));
}

// What optimizers remember travels piece by piece between its owner and the root.

template <class Slots>
auto& DataParallel::slot_of(Slots& slots, const ParameterPiece& piece) const {
  const auto shard = std::find_if(shards_.begin(), shards_.end(), [&](const Shard& s) { return s.piece == piece; });
  return *std::find_if(slots.begin(), slots.end(),
                       [&](const auto& slot) { return &slot.parameter.impl() == &shard->tensor.impl(); });
}

std::vector<ParameterPiece> DataParallel::pieces_of(size_t parameter) const {
  std::vector<ParameterPiece> pieces;
  for (const Bucket& bucket : buckets_)
    std::copy_if(bucket.begin(), bucket.end(), std::back_inserter(pieces),
                 [=](const ParameterPiece& piece) { return piece.parameter == parameter; });
  return pieces;
}

Tensor DataParallel::gather_state(const optim::Optimizer& optimizer, size_t parameter, size_t state) const {
  const Tensor& whole = parameters_[parameter].second;
  Tensor full = communicator_->is_root() ? empty(whole.shape(), whole.dtype()) : Tensor();
  for (const ParameterPiece& piece : pieces_of(parameter)) {
    Communicator::Outgoing to(ranks());
    Communicator::Incoming from(ranks());
    if (is_owned_by(piece, rank())) {
      const Tensor& mine = slot_of(optimizer.slots(), piece).state[state];
      if (communicator_->is_root()) copy_elements(full, piece.begin, mine, 0, piece.size());
      to[0] = bytes_of(mine, 0, piece.size());
    } else if (communicator_->is_root()) {
      from[static_cast<size_t>(piece.owner)] = writable_bytes_of(full, piece.begin, piece.size());
    }
    communicator_->exchange(to, from);
  }
  return full;
}

void DataParallel::scatter_state(optim::Optimizer& optimizer, size_t parameter, size_t state, const Tensor& full) {
  for (const ParameterPiece& piece : pieces_of(parameter)) {
    Communicator::Outgoing to(ranks());
    Communicator::Incoming from(ranks());
    if (is_owned_by(piece, rank())) {
      Tensor& mine = slot_of(optimizer.slots(), piece).state[state];
      if (communicator_->is_root()) copy_elements(mine, 0, full, piece.begin, piece.size());
      from[0] = writable_bytes_of(mine, 0, piece.size());
    } else if (communicator_->is_root()) {
      to[static_cast<size_t>(piece.owner)] = bytes_of(full, piece.begin, piece.size());
    }
    communicator_->exchange(to, from);
  }
}

nn::NamedTensors DataParallel::in_groups() const {
  nn::NamedTensors ordered;
  for (const optim::ParameterGroup& group : groups_)
    for (const Tensor& parameter : group.parameters) ordered.push_back(parameters_[index_of(parameter)]);
  return ordered;
}

nn::NamedTensors DataParallel::optimizer_state(const optim::Optimizer& optimizer, int64_t steps) const {
  if (alone()) return optimizer.state_dict(parameters_);
  const NoGradGuard no_grad;
  nn::NamedTensors state;
  for (const auto& [name, parameter] : in_groups()) {
    state.emplace_back(name + ".step", from_values(std::vector<int64_t>{steps}, {}));
    for (size_t i = 0; i < optimizer.state_names().size(); ++i)
      state.emplace_back(name + "." + std::string(optimizer.state_names()[i]), gather_state(optimizer, index_of(parameter), i));
  }
  return communicator_->is_root() ? state : nn::NamedTensors();
}

void DataParallel::load_optimizer_state(optim::Optimizer& optimizer, const nn::NamedTensors& state, int64_t steps) {
  if (alone()) return optimizer.load_state_dict(parameters_, state);
  const NoGradGuard no_grad;
  const nn::NamedTensors ordered = in_groups();
  std::vector<optim::ParameterState> read(ordered.size());
  communicator_->on_root([&] {
    read = optim::read_optimizer_state(ordered, optimizer.state_names(), state);
    for (size_t k = 0; k < read.size(); ++k)
      ONESTEP_CHECK(ConfigError, read[k].step == steps, "optimizer: the state ", ordered[k].first, ".step is ", read[k].step,
                    ", must be ", steps, ", the steps done");
  });
  for (auto& slot : optimizer.slots()) slot.step = steps;
  for (size_t k = 0; k < read.size(); ++k)
    for (size_t i = 0; i < optimizer.state_names().size(); ++i)
      scatter_state(optimizer, index_of(ordered[k].second), i, communicator_->is_root() ? read[k].tensors[i] : Tensor());
}

}  // namespace onestep::train
