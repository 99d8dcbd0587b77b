// A convolution and its gradient for the input are passes over a copy of a band of the input (convolution_plan.h); the gradient
// for the weight is made of dot products over the same copy.
#include "autograd/kernels/convolution.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/kernels/convolution_plan.h"
#include "autograd/kernels/flops.h"
#include "autograd/kernels/kernels.h"
#include "autograd/kernels/table.h"
#include "autograd/memory.h"

namespace onestep::kernels {
namespace {

/// Elements of a source block, which should stay in the L2 cache.
constexpr int64_t kBlockElements = int64_t{1} << 16;

/// Uninitialised elements from the block cache.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n)
      : bytes_(static_cast<size_t>(n) * sizeof(T)),
        data_(static_cast<T*>(memory::allocate(static_cast<uint64_t>(n) * sizeof(T)))) {}
  ~Scratch() { memory::deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

/// Rows [begin, end) as evenly as blocks of at most `most` allow.
struct RowBlocks {
  RowBlocks(int64_t n, int64_t most) : rows(n), count((n + most - 1) / most) {}
  Span operator[](int64_t i) const { return {rows * i / count, rows * (i + 1) / count}; }
  int64_t rows, count;
};

/// A weight [groups, out_channels, in_channels, taps] from the side of a convolution or of its gradient for the input: element
/// (group, to, from, tap).
template <class T>
struct Weight {
  const T* data;
  int64_t group_step, to_step, from_step;
};

/// One pass of both dims with the weights as conv_tiles reads them: [group, block of rows][channel and tap, row].
template <class T>
struct Pass {
  Pass(const Convolution& conv, const SourceBlock& block, const PassDim& row_pass, const PassDim& col_pass,
       int64_t from_channels)
      : h(row_pass), w(col_pass) {
    for (int64_t c = 0; c < from_channels; ++c) {
      for (const PassDim::Tap& row : h.taps) {
        for (const PassDim::Tap& col : w.taps) {
          offsets.push_back(block.offset(c, row, col));
          places.push_back({c, row.tap * conv.w.kernel + col.tap});
        }
      }
    }
  }
  int64_t depth() const { return std::ssize(offsets); }
  void pack(const Weight<T>& weight, int64_t group, Span rows, T* to) const {
    const int64_t height = rows.end - rows.begin;
    for (int64_t r = 0; r < height; ++r) {
      const T* from = weight.data + group * weight.group_step + (rows.begin + r) * weight.to_step;
      for (int64_t k = 0; k < depth(); ++k) {
        const auto& [channel, tap] = places[static_cast<size_t>(k)];
        to[k * height + r] = from[channel * weight.from_step + tap];
      }
    }
  }

  const PassDim &h, &w;
  std::vector<int64_t> offsets;
  std::vector<std::array<int64_t, 2>> places;  // channel and tap of each offset
};

double flops_of(const Convolution& conv) {
  return 2.0 * static_cast<double>(conv.groups * conv.out_channels * conv.in_channels * conv.taps()) *
         static_cast<double>(conv.out_plane());
}

/// Rough nanoseconds for an image.
double cost_of(const Convolution& conv) { return 0.02 * flops_of(conv); }

/// result[n, to] = sum over the channels and taps of weight and source, plus bias[to] (may be null).
template <class T>
void run(const Convolution& conv, const PlanDim& h, const PlanDim& w, int64_t from_channels, int64_t to_channels,
         const T* source, const Weight<T>& weight, const T* bias, T* result) {
  const int64_t most_rows = h.most(), width = w.most() + w.source.reach;
  const int64_t row_size =
      std::max<int64_t>(from_channels * width * std::ssize(w.source.phases) * std::ssize(h.source.phases), 1);
  const int64_t band = std::clamp<int64_t>(kBlockElements / row_size - h.source.reach, 1, most_rows);
  const RowBlocks bands(most_rows, band);
  const SourceBlock block(h, w, (most_rows + bands.count - 1) / bands.count);
  const RowBlocks blocks(to_channels, table<T>().conv_rows);

  std::vector<Pass<T>> passes;
  std::vector<int64_t> starts;  // of the packed weights of a pass
  int64_t packed_size = 0;
  for (const PassDim& row : h.passes) {
    for (const PassDim& col : w.passes) {
      passes.emplace_back(conv, block, row, col, from_channels);
      starts.push_back(packed_size);
      packed_size += conv.groups * to_channels * passes.back().depth();
    }
  }
  const Scratch<T> packed(packed_size);
  const auto weights_of = [&](size_t pass, int64_t group, Span rows) {
    return packed.data() + starts[pass] + (group * to_channels + rows.begin) * passes[pass].depth();
  };
  parallel_for(conv.groups * blocks.count, static_cast<double>(packed_size) / static_cast<double>(conv.groups * blocks.count),
               [&](int64_t i, int64_t end) {
                 for (; i < end; ++i)
                   for (size_t p = 0; p < passes.size(); ++p)
                     passes[p].pack(weight, i / blocks.count, blocks[i % blocks.count],
                                    weights_of(p, i / blocks.count, blocks[i % blocks.count]));
               });

  add_flops(static_cast<double>(conv.images) * flops_of(conv));
  const int64_t source_plane = h.source.size * w.source.size, result_plane = h.result * w.result;
  parallel_for(conv.images * conv.groups * bands.count, cost_of(conv) / static_cast<double>(conv.groups * bands.count),
               [&](int64_t piece, int64_t end) {
                 const Scratch<T> planes(block.size(from_channels));
                 const Scratch<T> sums(table<T>().conv_rows * block.outputs(block.height));
                 for (; piece < end; ++piece) {
                   const int64_t image = piece / bands.count, group = image % conv.groups;
                   const Span rows = bands[piece % bands.count];
                   block.fill(source + image * from_channels * source_plane, from_channels, rows.begin, planes.data());
                   T* const to = result + image * to_channels * result_plane;
                   for (size_t p = 0; p < passes.size(); ++p) {
                     const PassDim &row = passes[p].h, &col = passes[p].w;
                     const int64_t count = std::min(rows.end, row.count) - rows.begin, n = block.outputs(count);
                     if (count <= 0) continue;
                     for (int64_t b = 0; b < blocks.count; ++b) {
                       const Span channels = blocks[b];
                       table<T>().conv_tiles(channels.end - channels.begin, passes[p].depth(), passes[p].offsets.data(),
                                             weights_of(p, group, channels), planes.data(), n, sums.data(), n);
                       for (int64_t c = channels.begin; c < channels.end; ++c) {
                         const T shift = bias ? bias[group * to_channels + c] : T(0);
                         table<T>().conv_put(sums.data() + (c - channels.begin) * n, block.width, shift, col.count, count,
                                             to + c * result_plane + (row.first + rows.begin * row.step) * w.result + col.first,
                                             row.step * w.result, col.step);
                       }
                     }
                   }
                 }
               });
}

/// The sum of one element of dweight, in plain order: where dots() met an element of x that is not finite, it may have
/// multiplied it by the 0 of a place that is no output.
template <class T>
T exact_element(const Convolution& conv, const T* x, const T* dy, int64_t o, int64_t c, int64_t tap) {
  const int64_t group = o / conv.out_channels;
  const Span cols = conv.w.outputs(tap % conv.w.kernel);
  T total = 0;
  for (int64_t n = 0; n < conv.images; ++n) {
    const T* in = x + ((n * conv.groups + group) * conv.in_channels + c) * conv.in_plane();
    const T* grad = dy + (n * conv.groups * conv.out_channels + o) * conv.out_plane();
    const Span rows = conv.h.outputs(tap / conv.w.kernel);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const T* row = in + conv.h.place(i, tap / conv.w.kernel) * conv.w.in;
      for (int64_t j = cols.begin; j < cols.end; ++j)
        total += grad[i * conv.w.out + j] * row[conv.w.place(j, tap % conv.w.kernel)];
    }
  }
  return total;
}

}  // namespace

Span WindowDim::outputs(int64_t tap) const {
  const int64_t first = padding - tap * dilation;  // outputs o with 0 <= o * stride - first < in
  const int64_t begin = first <= 0 ? 0 : std::min(out, (first + stride - 1) / stride);
  const int64_t end = in + first <= 0 ? 0 : std::min(out, (in + first + stride - 1) / stride);
  return {begin, std::max(begin, end)};
}

template <class T>
void convolution(const Convolution& conv, const T* x, const T* weight, const T* bias, T* y) {
  const int64_t k = conv.in_channels * conv.taps();
  const PlanDim h = forward_plan(conv.h);
  run<T>(conv, h, with_copies(h, forward_plan(conv.w), conv.out_channels), conv.in_channels, conv.out_channels, x,
         {weight, conv.out_channels * k, k, conv.taps()}, bias, y);
}

template <class T>
void convolution_input_grad(const Convolution& conv, const T* dy, const T* weight, T* dx) {
  const int64_t k = conv.in_channels * conv.taps();
  const PlanDim h = input_grad_plan(conv.h);
  run<T>(conv, h, with_copies(h, input_grad_plan(conv.w), conv.in_channels), conv.out_channels, conv.in_channels, dy,
         {weight, conv.out_channels * k, conv.taps(), k}, nullptr, dx);
}

template <class T>
void convolution_weight_grad(const Convolution& conv, const T* x, const T* dy, T* dweight) {
  const PlanDim h = forward_plan(conv.h), w = with_copies(h, forward_plan(conv.w), conv.out_channels);
  const SourceBlock block(h, w, conv.h.out);
  const Pass<T> pass(conv, block, h.passes[0], w.passes[0], conv.in_channels);
  const int64_t k = pass.depth(), all = conv.groups * conv.out_channels * k, n = block.outputs(conv.h.out);
  // Images are summed in chunks beside each other, and within one in batches that share the reductions of lanes: chunks of
  // enough outputs to make those cheap.
  constexpr int64_t kLeastOutputs = 512, kMostChunks = 8;
  const int64_t chunks =
      std::clamp<int64_t>(conv.images * n / kLeastOutputs, 1, std::clamp<int64_t>(conv.images, 1, kMostChunks));
  const int64_t source_size = block.size(conv.in_channels), grad_size = conv.out_channels * n;
  const int64_t batch =
      std::clamp<int64_t>(2 * kBlockElements / (source_size + grad_size), 1, std::max<int64_t>(conv.images / chunks, 1));
  const Scratch<T> sums((chunks - 1) * all + 1);
  const auto sums_of = [&](int64_t chunk) { return chunk == 0 ? dweight : sums.data() + (chunk - 1) * all; };
  add_flops(static_cast<double>(conv.images) * flops_of(conv));
  const double cost = cost_of(conv) * static_cast<double>(conv.images) / static_cast<double>(chunks * conv.groups);
  parallel_for(chunks * conv.groups, cost, [&](int64_t piece, int64_t end) {
    const Scratch<T> planes(batch * source_size), grads(batch * grad_size + 32);
    for (; piece < end; ++piece) {
      const int64_t group = piece % conv.groups, chunk = piece / conv.groups;
      const int64_t first = conv.images * chunk / chunks, last = conv.images * (chunk + 1) / chunks;
      T* const to = sums_of(chunk) + group * conv.out_channels * k;
      if (first == last) std::fill(to, to + conv.out_channels * k, T(0));
      for (int64_t from = first; from < last; from += batch) {
        const int64_t count = std::min(batch, last - from);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t image = (from + i) * conv.groups + group;
          block.fill(x + image * conv.in_channels * conv.in_plane(), conv.in_channels, 0, planes.data() + i * source_size);
          const T* grad = dy + image * conv.out_channels * conv.out_plane();
          T* row = grads.data() + i * grad_size;
          for (int64_t o = 0; o < conv.out_channels; ++o, row += n) {
            table<T>().conv_take(grad, conv.w.out, 1, conv.w.out, conv.h.out, 0, row, block.width);
            table<T>().conv_take(grad, 0, 1, 0, 1, 0, row + conv.h.out * block.width, n - conv.h.out * block.width);
            grad += conv.out_plane();
          }
        }
        table<T>().conv_dots(conv.out_channels, k, pass.offsets.data(),
                             {.images = count,
                              .n = n,
                              .dy = grads.data(),
                              .dy_image = grad_size,
                              .source = planes.data(),
                              .source_image = source_size,
                              .to = to,
                              .ld = k,
                              .add = from > first});
      }
    }
  });
  for (int64_t chunk = 1; chunk < chunks; ++chunk) add(dweight, 1, sums_of(chunk), 1, dweight, all);
  parallel_for(all, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i)
      if (std::isnan(dweight[i]))
        dweight[i] = exact_element(conv, x, dy, i / k, i / conv.taps() % conv.in_channels, i % conv.taps());
  });
}

#define ONESTEP_INSTANTIATE(T)                                                      \
  template void convolution(const Convolution&, const T*, const T*, const T*, T*);  \
  template void convolution_input_grad(const Convolution&, const T*, const T*, T*); \
  template void convolution_weight_grad(const Convolution&, const T*, const T*, T*);
ONESTEP_INSTANTIATE(float)
ONESTEP_INSTANTIATE(double)
#undef ONESTEP_INSTANTIATE

}  // namespace onestep::kernels
