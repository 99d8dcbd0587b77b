#include "autograd/kernels/convolution_plan.h"

#include <algorithm>
#include <utility>

#include "autograd/kernels/table.h"

namespace onestep::kernels {

int64_t SourceDim::copy_of(int64_t phase) {
  const auto found = std::find(phases.begin(), phases.end(), phase);
  if (found != phases.end()) return found - phases.begin();
  phases.push_back(phase);
  return std::ssize(phases) - 1;
}

int64_t PlanDim::most() const {
  int64_t most = 0;
  for (const PassDim& pass : passes) most = std::max(most, pass.count);
  return most;
}

PlanDim forward_plan(const WindowDim& d) {
  PlanDim plan = {{d.in, d.stride, d.padding, 0, {}}, {{d.out, 0, 1, {}}}, d.out};
  for (int64_t tap = 0; tap < d.kernel; ++tap) {
    const int64_t place = tap * d.dilation, shift = place / d.stride;
    plan.passes[0].taps.push_back({tap, plan.source.copy_of(place % d.stride), shift});
    plan.source.reach = std::max(plan.source.reach, shift);
  }
  return plan;
}

PlanDim input_grad_plan(const WindowDim& d) {
  PlanDim plan = {{d.out, 1, 0, 0, {0}}, {}, d.in};
  for (int64_t phase = 0; phase < std::min(d.stride, d.in); ++phase) {
    PassDim pass = {(d.in - phase + d.stride - 1) / d.stride, phase, d.stride, {}};
    for (int64_t tap = 0; tap < d.kernel; ++tap) {
      const int64_t place = phase + d.padding - tap * d.dilation;  // of output place / stride
      if (place % d.stride == 0) pass.taps.push_back({tap, 0, place / d.stride});
    }
    for (const PassDim::Tap& tap : pass.taps) plan.source.margin = std::max(plan.source.margin, -tap.shift);
    plan.passes.push_back(pass);
  }
  for (PassDim& pass : plan.passes) {
    for (PassDim::Tap& tap : pass.taps) {
      tap.shift += plan.source.margin;
      plan.source.reach = std::max(plan.source.reach, tap.shift);
    }
  }
  return plan;
}

PlanDim with_copies(const PlanDim& rows, PlanDim plan, int64_t to_channels) {
  // In cycles for a channel: outputs take one for two vectors, a row of a copy about six.
  const int64_t height = rows.most() + rows.source.reach, copies = std::ssize(rows.source.phases);
  const auto vectors = [&](int64_t width) { return (rows.most() * width + 15) / 16; };
  int64_t taps = 0, all_taps = 0;
  for (const PassDim& pass : plan.passes) taps += std::ssize(pass.taps);
  for (const PassDim& pass : rows.passes) all_taps += std::ssize(pass.taps) * taps;
  const int64_t saved = (vectors(plan.most() + plan.source.reach) - vectors(plan.most())) * all_taps * to_channels / 2;
  const int64_t added = std::min(taps, plan.source.reach * std::ssize(plan.source.phases)) * copies * height * 6;
  if (saved <= added) return plan;
  const std::vector<int64_t> phases = std::move(plan.source.phases);
  plan.source.phases.clear();
  plan.source.reach = 0;
  for (PassDim& pass : plan.passes) {
    for (PassDim::Tap& tap : pass.taps) {
      const int64_t phase = phases[static_cast<size_t>(tap.copy)] + tap.shift * plan.source.stride;
      tap.copy = plan.source.copy_of(phase);
      tap.shift = 0;
    }
  }
  return plan;
}

SourceBlock::SourceBlock(const PlanDim& rows, const PlanDim& cols, int64_t band)
    : h(rows), w(cols), height(band + rows.source.reach), width(cols.most() + cols.source.reach) {}

int64_t SourceBlock::offset(int64_t channel, const PassDim::Tap& row, const PassDim::Tap& col) const {
  const int64_t copy = row.copy * std::ssize(w.source.phases) + col.copy;
  return channel * plane() + copy * length() + row.shift * width + col.shift;
}

namespace {

/// The entries of a copy that lie inside the source, and the place of the first one.
struct Inside {
  Inside(const SourceDim& d, int64_t phase, int64_t first, int64_t length) {
    const int64_t start = d.margin - phase - first * d.stride;
    begin = std::clamp<int64_t>((start + d.stride - 1) / d.stride, 0, length);
    end = std::clamp<int64_t>((start + d.size + d.stride - 1) / d.stride, begin, length);
    place = begin * d.stride - start;
  }
  int64_t begin, end, place;
};

}  // namespace

template <class T>
void SourceBlock::fill(const T* from, int64_t channels, int64_t first, T* to) const {
  const SourceDim &rows = h.source, &cols = w.source;
  const auto take = table<T>().conv_take;
  std::vector<std::pair<Inside, Inside>> copies;
  for (const int64_t row_phase : rows.phases)
    for (const int64_t col_phase : cols.phases)
      copies.emplace_back(Inside(rows, row_phase, first, height), Inside(cols, col_phase, 0, width));
  for (int64_t c = 0; c < channels; ++c, from += rows.size * cols.size) {
    for (const auto& [row, col] : copies) {
      take(from, 0, 1, 0, 1, 0, to, row.begin * width);
      take(from + row.place * cols.size + col.place, rows.stride * cols.size, cols.stride, col.end - col.begin,
           row.end - row.begin, col.begin, to + row.begin * width, width);
      take(from, 0, 1, 0, 1, 0, to + row.end * width, (height - row.end) * width);
      to += length();
    }
  }
  take(from, 0, 1, 0, 1, 0, to, slack());
}

template void SourceBlock::fill(const float*, int64_t, int64_t, float*) const;
template void SourceBlock::fill(const double*, int64_t, int64_t, double*) const;

}  // namespace onestep::kernels
