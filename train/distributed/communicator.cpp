#include "train/distributed/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace onestep::train {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

std::unique_ptr<Communicator::Transfer> Communicator::start(const Outgoing& to, const Incoming& from) {
  for (size_t r = 0; r < to.size(); ++r)
    if (static_cast<int>(r) != rank()) traffic_.bytes += static_cast<int64_t>(to[r].size());
  return transfer(to, from);
}

void Communicator::wait(Transfer& transfer) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  transfer.wait();
  traffic_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::string> Communicator::gather_text(const std::string& mine) {
  const auto ranks = static_cast<size_t>(size()), self = static_cast<size_t>(rank());
  std::vector<uint64_t> sizes(ranks);
  sizes[self] = mine.size();
  Incoming from;
  for (uint64_t& bytes : sizes) from.push_back(std::as_writable_bytes(std::span(&bytes, 1)));
  exchange(Outgoing(ranks, std::as_bytes(std::span(&sizes[self], 1))), from);
  std::vector<std::string> all(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    all[r].resize(sizes[r]);
    from[r] = std::as_writable_bytes(std::span(all[r]));
  }
  exchange(Outgoing(ranks, bytes_of(mine)), from);
  all[self] = mine;
  return all;
}

std::vector<std::vector<double>> Communicator::all_gather(const std::vector<double>& mine) {
  const std::string text(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double));
  std::vector<std::vector<double>> all;
  for (const std::string& bytes : gather_text(text)) {
    all.emplace_back(bytes.size() / sizeof(double));
    if (!bytes.empty()) std::memcpy(all.back().data(), bytes.data(), bytes.size());
  }
  return all;
}

bool Communicator::any(bool mine) {
  const std::vector<std::string> all = gather_text(std::string(mine ? "x" : ""));
  return std::any_of(all.begin(), all.end(), [](const std::string& said) { return !said.empty(); });
}

std::string Communicator::broadcast(const std::string& roots) { return gather_text(is_root() ? roots : std::string()).front(); }

void Communicator::broadcast(std::span<std::byte> bytes) {
  const auto ranks = static_cast<size_t>(size());
  Incoming from(ranks);
  if (!is_root()) from[0] = bytes;
  exchange(is_root() ? Outgoing(ranks, bytes) : Outgoing(ranks), from);
}

void Communicator::on_root(const std::function<void()>& work) {
  std::exception_ptr error;
  std::string reason;
  try {
    if (is_root()) work();
  } catch (const Error& failure) {
    error = std::current_exception();
    reason = failure.what();
  }
  reason = broadcast(reason);
  all_know_ = !reason.empty();
  if (error) std::rethrow_exception(error);
  ONESTEP_CHECK(SharedError, reason.empty(), reason);
}

void Communicator::on_all(const std::function<void()>& work) {
  std::exception_ptr error;
  std::string reason;
  try {
    work();
  } catch (const Error& failure) {
    error = std::current_exception();
    reason = failure.what();
  }
  const std::vector<std::string> reasons = gather_text(reason);
  const auto failed = std::find_if(reasons.begin(), reasons.end(), [](const std::string& r) { return !r.empty(); });
  all_know_ = failed != reasons.end();
  if (!all_know_) return;
  ONESTEP_CHECK(SharedError, is_root(), *failed);
  if (error && std::count(reasons.begin(), reasons.end(), reason) == size()) std::rethrow_exception(error);
  throw Error("rank " + std::to_string(failed - reasons.begin()) + ": " + *failed);
}

}  // namespace onestep::train
