#include "autograd/kernels/convolution.h"

#include <algorithm>

#include "autograd/kernels/kernels.h"
#include "autograd/memory.h"

namespace onestep::kernels {

Span WindowDim::outputs(int64_t tap) const {
  const int64_t first = padding - tap * dilation;  // outputs o with 0 <= o * stride - first < in
  const int64_t begin = first <= 0 ? 0 : std::min(out, (first + stride - 1) / stride);
  const int64_t end = in + first <= 0 ? 0 : std::min(out, (in + first + stride - 1) / stride);
  return {begin, std::max(begin, end)};
}

namespace {

/// Elements of a block of columns: it should stay in the L2 cache, beside what the product packs.
constexpr int64_t kBlockElements = int64_t{1} << 16;

/// Uninitialised elements from the block cache.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n)
      : bytes_(static_cast<size_t>(n) * sizeof(T)), data_(n > 0 ? static_cast<T*>(memory::allocate(bytes_)) : nullptr) {}
  ~Scratch() {
    if (data_) memory::deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

/// cols[(c, i, j), o] = x[c, place(i), place(j)] for the outputs o of `rows`; 0 outside the input.
template <class T>
void im2col(const Convolution& conv, const T* x, Span rows, T* cols) {
  const WindowDim &h = conv.h, &w = conv.w;
  for (int64_t c = 0; c < conv.in_channels; ++c, x += conv.in_plane()) {
    for (int64_t tap = 0; tap < conv.taps(); ++tap) {
      const int64_t i = tap / w.kernel, j = tap % w.kernel;
      const Span inside = w.outputs(j);
      for (int64_t row = rows.begin; row < rows.end; ++row, cols += w.out) {
        const int64_t place = h.place(row, i);
        if (place < 0 || place >= h.in) {
          std::fill(cols, cols + w.out, T(0));
          continue;
        }
        const T* from = x + place * w.in + w.place(inside.begin, j);
        std::fill(cols, cols + inside.begin, T(0));
        for (int64_t o = inside.begin; o < inside.end; ++o, from += w.stride) cols[o] = *from;
        std::fill(cols + inside.end, cols + w.out, T(0));
      }
    }
  }
}

/// dx[c, place(i), place(j)] += cols[(c, i, j), o] for `channels` channels and all outputs o: the transpose of im2col.
template <class T>
void col2im(const Convolution& conv, const T* cols, int64_t channels, T* dx) {
  const WindowDim &h = conv.h, &w = conv.w;
  std::fill(dx, dx + channels * conv.in_plane(), T(0));
  for (int64_t c = 0; c < channels; ++c, dx += conv.in_plane()) {
    for (int64_t tap = 0; tap < conv.taps(); ++tap) {
      const int64_t i = tap / w.kernel, j = tap % w.kernel;
      const Span inside = w.outputs(j);
      for (int64_t row = 0; row < h.out; ++row, cols += w.out) {
        const int64_t place = h.place(row, i);
        if (place < 0 || place >= h.in) continue;
        T* to = dx + place * w.in + w.place(inside.begin, j);
        for (int64_t o = inside.begin; o < inside.end; ++o, to += w.stride) *to += cols[o];
      }
    }
  }
}

/// What all three do with the pieces of a convolution.
template <class T>
struct Pieces {
  explicit Pieces(const Convolution& c) : conv(c), k(c.in_channels * c.taps()) {
    // The columns of a 1 x 1 kernel are the input itself.
    const auto plain = [](const WindowDim& d) { return d.kernel == 1 && d.stride == 1 && d.padding == 0 && d.in == d.out; };
    in_place = plain(c.h) && plain(c.w);
    rows_of_block = in_place ? c.h.out : std::clamp<int64_t>(kBlockElements / std::max<int64_t>(k * c.w.out, 1), 1, c.h.out);
    blocks = (c.h.out + rows_of_block - 1) / rows_of_block;
    flops = 2.0 * static_cast<double>(c.out_channels * k) * static_cast<double>(c.out_plane());
  }

  /// Rough nanoseconds of the work on one image of one group.
  double cost() const { return 0.03 * flops + static_cast<double>(in_place ? 0 : k * conv.out_plane()); }
  Span rows(int64_t block) const { return {block * rows_of_block, std::min((block + 1) * rows_of_block, conv.h.out)}; }
  int64_t scratch_size() const { return in_place ? 0 : k * rows_of_block * conv.w.out; }
  /// The columns of a block of output rows, in `scratch` or where the input lies.
  const T* columns(const T* x, Span rows, T* scratch) const {
    if (in_place) return x;
    im2col(conv, x, rows, scratch);
    return scratch;
  }

  const Convolution& conv;
  int64_t k;
  bool in_place;
  int64_t rows_of_block, blocks;
  double flops;
};

}  // namespace

template <class T>
void convolution(const Convolution& conv, const T* x, const T* weight, const T* bias, T* y) {
  const Pieces<T> p(conv);
  const int64_t pieces = conv.images * conv.groups * p.blocks, pixels = conv.out_plane();
  parallel_for(pieces, p.cost() / static_cast<double>(p.blocks), [&](int64_t piece, int64_t end) {
    Scratch<T> scratch(p.scratch_size());
    for (; piece < end; ++piece) {
      const int64_t image = piece / p.blocks, group = image % conv.groups, first = group * conv.out_channels;
      const Span rows = p.rows(piece % p.blocks);
      const int64_t n = (rows.end - rows.begin) * conv.w.out;
      const T* cols = p.columns(x + image * conv.in_channels * conv.in_plane(), rows, scratch.data());
      T* to = y + image * conv.out_channels * pixels + rows.begin * conv.w.out;
      gemm(false, false, conv.out_channels, n, p.k, weight + first * p.k, p.k, cols, n, to, pixels, false);
      for (int64_t o = 0; bias && o < conv.out_channels; ++o, to += pixels)
        for (int64_t i = 0; i < n; ++i) to[i] += bias[first + o];
    }
  });
}

template <class T>
void convolution_input_grad(const Convolution& conv, const T* dy, const T* weight, T* dx) {
  const Pieces<T> p(conv);
  const int64_t taps = conv.taps(), pixels = conv.out_plane();
  const int64_t most = p.in_place ? conv.in_channels : kBlockElements / std::max<int64_t>(taps * pixels, 1);
  const int64_t channels = std::clamp<int64_t>(most, 1, std::max<int64_t>(conv.in_channels, 1));
  parallel_for(conv.images * conv.groups, p.cost(), [&](int64_t image, int64_t end) {
    Scratch<T> scratch(p.in_place ? 0 : channels * taps * pixels);
    for (; image < end; ++image) {
      const T* w = weight + image % conv.groups * conv.out_channels * p.k;
      for (int64_t c = 0; c < conv.in_channels; c += channels) {
        const int64_t count = std::min(channels, conv.in_channels - c);
        T* const to = dx + (image * conv.in_channels + c) * conv.in_plane();
        T* const cols = p.in_place ? to : scratch.data();
        gemm(true, false, count * taps, pixels, conv.out_channels, w + c * taps, p.k, dy + image * conv.out_channels * pixels,
             pixels, cols, pixels, false);
        if (!p.in_place) col2im(conv, cols, count, to);
      }
    }
  });
}

template <class T>
void convolution_weight_grad(const Convolution& conv, const T* x, const T* dy, T* dweight) {
  const Pieces<T> p(conv);
  const int64_t size = conv.out_channels * p.k, all = conv.groups * size, pixels = conv.out_plane();
  // Sums of chunks beside each other: as many as threads may want, but no more memory than this.
  constexpr int64_t kMostChunks = 8, kMostElements = int64_t{1} << 23;
  const int64_t most = std::clamp<int64_t>(kMostElements / std::max<int64_t>(all, 1), 1, kMostChunks);
  const int64_t chunks = std::clamp<int64_t>(conv.images, 1, most);
  Scratch<T> sums((chunks - 1) * all);
  const auto sum_of = [&](int64_t chunk) { return chunk == 0 ? dweight : sums.data() + (chunk - 1) * all; };
  const double cost = p.cost() * static_cast<double>(conv.images) / static_cast<double>(chunks);
  parallel_for(chunks * conv.groups, cost, [&](int64_t piece, int64_t end) {
    Scratch<T> scratch(p.scratch_size());
    for (; piece < end; ++piece) {
      const int64_t chunk = piece / conv.groups, group = piece % conv.groups;
      T* const to = sum_of(chunk) + group * size;
      bool add = false;
      for (int64_t n = conv.images * chunk / chunks; n < conv.images * (chunk + 1) / chunks; ++n) {
        const int64_t image = n * conv.groups + group;
        for (int64_t block = 0; block < p.blocks; ++block, add = true) {
          const Span rows = p.rows(block);
          const int64_t count = (rows.end - rows.begin) * conv.w.out;
          const T* cols = p.columns(x + image * conv.in_channels * conv.in_plane(), rows, scratch.data());
          gemm(false, true, conv.out_channels, p.k, count, dy + image * conv.out_channels * pixels + rows.begin * conv.w.out,
               pixels, cols, count, to, p.k, add);
        }
      }
      if (!add) std::fill(to, to + size, T(0));
    }
  });
  for (int64_t chunk = 1; chunk < chunks; ++chunk) add(dweight, 1, sum_of(chunk), 1, dweight, all);
}

#define ONESTEP_INSTANTIATE(T)                                                      \
  template void convolution(const Convolution&, const T*, const T*, const T*, T*);  \
  template void convolution_input_grad(const Convolution&, const T*, const T*, T*); \
  template void convolution_weight_grad(const Convolution&, const T*, const T*, T*);
ONESTEP_INSTANTIATE(float)
ONESTEP_INSTANTIATE(double)
#undef ONESTEP_INSTANTIATE

}  // namespace onestep::kernels
