#include "autograd/profiler.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "autograd/kernels/flops.h"
#include "autograd/ops_math.h"

namespace onestep {
namespace {
thread_local Profiler* active_profiler = nullptr;
}  // namespace

Profiler::Profiler() : flops_(kernels::counted_flops()), outer_(std::exchange(active_profiler, this)) {
  kernels::count_flops(true);
}

Profiler::~Profiler() {
  active_profiler = outer_;
  kernels::count_flops(outer_ != nullptr);
}

Profiler* Profiler::active() { return active_profiler; }

void Profiler::mark(const std::string& name, double bytes) {
  const auto now = std::chrono::steady_clock::now();
  const double flops = kernels::counted_flops();
  Entry& entry = entries_[name];
  entry.name = name;
  ++entry.calls;
  entry.seconds += std::chrono::duration<double>(now - last_).count();
  entry.flops += flops - flops_;
  entry.bytes += bytes;
  last_ = now;
  flops_ = flops;
}

std::vector<Profiler::Entry> Profiler::entries() const {
  std::vector<Entry> all;
  for (const auto& [_, entry] : entries_) all.push_back(entry);
  std::stable_sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.seconds > b.seconds; });
  return all;
}

double bytes_of(const Tensor& x) { return x.defined() ? static_cast<double>(x.numel() * size_of(x.dtype())) : 0; }

void profile_mark(const char* name) {
  if (Profiler* profiler = Profiler::active()) profiler->mark(name);
}

std::string profile_table(const std::vector<Profiler::Entry>& entries) {
  double total = 0;
  for (const Profiler::Entry& entry : entries) total += entry.seconds;
  std::string text;
  char line[160];
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    text += line;
  };
  add("%-44s %9s %11s %7s %9s %8s\n", "op", "calls", "ms", "share", "GFLOP/s", "GB/s");
  for (const Profiler::Entry& e : entries) {
    add("%-44s %9lld %11.2f %6.1f%%", e.name.c_str(), static_cast<long long>(e.calls), 1e3 * e.seconds,
        100 * e.seconds / total);
    e.flops > 0 ? add(" %9.1f", 1e-9 * e.flops / e.seconds) : add(" %9s", "");
    e.bytes > 0 ? add(" %8.2f\n", 1e-9 * e.bytes / e.seconds) : add("%s", "\n");
  }
  return text;
}

}  // namespace onestep
