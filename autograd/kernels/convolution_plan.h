#pragma once
// How a convolution, or its gradient for the input, reads its source: planes with margins of zeros, split by the stride's
// phases, in which output q of a plane reads place q + offset for every channel and tap.
#include <vector>

#include "autograd/kernels/convolution.h"

namespace onestep::kernels {

/// One dim of a source, copied once for each of some phases: entry i of a copy is place i * stride + phase - margin.
struct SourceDim {
  int64_t size, stride, margin;
  int64_t reach = 0;            // entries that outputs read beyond their own number
  std::vector<int64_t> phases;  // of the copies

  /// The number of the copy with this phase, which is added if there is none.
  int64_t copy_of(int64_t phase);
};

/// Outputs first, first + step, ... of one dim and the taps that they read.
struct PassDim {
  struct Tap {
    int64_t tap, copy, shift;
  };
  int64_t count, first, step;
  std::vector<Tap> taps;
};

/// One dim of a whole job: a convolution is one pass, its gradient for the input one for each phase of the stride.
struct PlanDim {
  SourceDim source;
  std::vector<PassDim> passes;
  int64_t result;  // places of the result

  int64_t most() const;  // outputs of a pass
};
PlanDim forward_plan(const WindowDim& d);
PlanDim input_grad_plan(const WindowDim& d);
/// `cols` with a copy for each tap, so that no entries lie between one row and the next, where that is cheaper than computing
/// outputs for those entries in to_channels planes.
PlanDim with_copies(const PlanDim& rows, PlanDim cols, int64_t to_channels);

/// The source planes of a band of output rows [first, first + rows), as one block: [channels, copies, length] with rows of
/// `width`.
struct SourceBlock {
  SourceBlock(const PlanDim& h, const PlanDim& w, int64_t band);

  int64_t length() const { return height * width; }  // of a plane of one phase
  int64_t plane() const { return std::ssize(h.source.phases) * std::ssize(w.source.phases) * length(); }
  /// Outputs beside each other in `rows` rows, up to a multiple of 16.
  int64_t outputs(int64_t rows) const { return (rows * width + 15) / 16 * 16; }
  /// Elements behind the last plane: those that outputs may read, which are 0, and those that conv_take may write.
  int64_t slack() const { return width + 16; }
  int64_t size(int64_t channels) const { return channels * plane() + slack() + 32; }
  int64_t offset(int64_t channel, const PassDim::Tap& row, const PassDim::Tap& col) const;
  /// Copies the planes that outputs from row `first` on read.
  template <class T>
  void fill(const T* from, int64_t channels, int64_t first, T* to) const;

  const PlanDim &h, &w;
  int64_t height, width;
};

}  // namespace onestep::kernels
