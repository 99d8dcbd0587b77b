// The parallel driver over the serial GEMM of the table in use: c is cut into a grid of rectangles; each thread has its own
// memory for packing. An element of c does not depend on the rectangle it falls into.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "autograd/half.h"
#include "autograd/kernels/aligned_block.h"
#include "autograd/kernels/flops.h"
#include "autograd/kernels/isa.h"
#include "autograd/kernels/kernels.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

constexpr int64_t kAlign = 64;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

template <class T>
struct Workspace {
  std::unique_ptr<T, Free> block;
  int64_t size = 0;
};

/// At least n elements that start on a cache line, kept by the calling thread for its next product.
template <class T>
T* workspace(int64_t n) {
  thread_local Workspace<T> own;  // GCC 12 never destroys one that is a variable template
  if (n > own.size) {
    own.size = 0;
    own.block.reset();  // not both at once
    own.block.reset(static_cast<T*>(required_block(static_cast<size_t>(n) * sizeof(T))));
    own.size = n;
  }
  return own.block.get();
}

/// Rounds up to whole cache lines, so that the threads' parts do not share one.
int64_t padded(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

/// One product, as gemm takes it.
template <class E>
struct Product {
  bool trans_a, trans_b;
  int64_t m, n, k;
  Source<E> a;
  int64_t lda;
  Source<E> b;
  int64_t ldb;
  const Packed<E>* packed;  // all of op(b), or null
  Number<E>* c;             // or null: see Products
  int64_t ldc;
  bool accumulate;
  Epilogue epilogue = {};

  /// Rows [i, i_end) and columns [j, j_end) of it.
  void run(int64_t i, int64_t i_end, int64_t j, int64_t j_end, Number<E>* memory) const {
    products<E>().gemm(trans_a, trans_b, i_end - i, j_end - j, k, a + (trans_a ? i : i * lda), lda, b + (trans_b ? j * ldb : j),
                       ldb, packed, c ? c + i * ldc + j : nullptr, ldc, accumulate, epilogue.of_part(i, j), memory);
  }
  /// Elements of memory that it needs for at most that many.
  int64_t memory(int64_t rows, int64_t cols) const { return padded(products<E>().workspace(rows, cols, k, !c)); }
};

/// An epilogue, after which the elements are rounded.
struct Rounding {
  Epilogue before;
  BFloat16* to;
  int64_t ld;

  static void call(const void* context, void* c, int64_t ldc, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const auto& x = *static_cast<const Rounding*>(context);
    x.before(c, ldc, row, rows, col, cols);
    for (int64_t r = 0; r < rows; ++r)
      table<float>().to_bf16(static_cast<const float*>(c) + r * ldc, reinterpret_cast<uint16_t*>(x.to + (row + r) * x.ld + col),
                             cols);
  }
};

double flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

/// Rough nanoseconds of a product of this size: its multiply-adds, and b read at 20 GB/s.
double cost(int64_t m, int64_t n, int64_t k) {
  return 0.02 * flops(m, n, k) + 0.2 * static_cast<double>(n) * static_cast<double>(k);
}

struct Grid {
  int64_t rows, cols;
};

constexpr int64_t kRowsOfPart = 128;  // at least, where parts are cut finer than threads ask for

/// Elements of b up to which it is packed once for all threads: one that is larger is split by columns, or packed per thread.
constexpr int64_t kMostShared = int64_t{1} << 22;

/// Cuts [m, n] so that a part reads as little of a and b as possible; whole vectors of columns. Where there are many rows, four
/// parts a thread, dynamically scheduled: a core that another program uses as well then does fewer.
Grid grid_for(int threads, int64_t m, int64_t n) {
  Grid best = {threads, 1};
  int64_t least = INT64_MAX;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    if (threads % rows != 0) continue;
    const int64_t cols = threads / rows;
    const int64_t reads = (m + rows - 1) / rows + (n + cols - 1) / cols;
    if (rows > m || cols > (n + 15) / 16 || reads >= least) continue;
    best = {rows, cols};
    least = reads;
  }
  for (int i = 0; i < 2 && m / (2 * best.rows) >= kRowsOfPart; ++i) best.rows *= 2;
  return best;
}

/// Elements of a part that stays in the L2 cache until it is rounded, and rows of which its number is a multiple where these
/// are many: AMX multiplies 32 at once.
constexpr int64_t kMostRounded = int64_t{1} << 18, kRoundedRows = 32;

/// The same for a result that is rounded, in more parts, but not so many that it takes long beside multiplying to pack the
/// other operand for each, or to read it from beyond the L2 cache: of columns where a is small, else of rows.
Grid grid_for_rounding(int threads, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kSmallA = 1024, kLeastCols = 384;
  const Grid grid = grid_for(threads, m, n);
  const bool by_columns = n > m && m <= kSmallA;
  const int64_t least_rows = n * k > kMostShared ? 1024 : n * k > 2 * kMostRounded ? 256 : 64;
  const int64_t parts = ((m * n + kMostRounded - 1) / kMostRounded + threads - 1) / threads * threads;
  const int64_t most = std::min(parts, by_columns ? n / kLeastCols : m / least_rows);
  if (grid.rows * grid.cols >= most) return grid;
  return by_columns ? Grid{1, most} : Grid{most, 1};
}

/// Of `parts` of n that are cut at multiples of `step`: where part i begins, and how long one is at most.
int64_t start_of(int64_t i, int64_t parts, int64_t n, int64_t step) {
  return std::min(n, (n + step - 1) / step * i / parts * step);
}
int64_t longest(int64_t parts, int64_t n, int64_t step) { return ((n + step - 1) / step + parts - 1) / parts * step; }

/// x in parts by several threads, each with memory of its own.
template <class E>
void multiply_parts(Product<E> x, int threads) {
  const Grid grid = !x.c ? grid_for_rounding(threads, x.m, x.n, x.k) : grid_for(threads, x.m, x.n);
  const int64_t row_step = !x.c && bf16_in_tiles() && x.m >= 4 * kRoundedRows * grid.rows ? kRoundedRows : 1, col_step = 16;
  const int64_t size = x.memory(longest(grid.rows, x.m, row_step), longest(grid.cols, x.n, col_step));
  const int64_t shared = grid.cols == 1 && x.m >= 2 * kRowsOfPart ? padded(products<E>().packed_size(x.n, x.k)) : 0;
  const bool share = shared > 0 && shared <= kMostShared;
  auto* const memory = workspace<Number<E>>(size * threads + (share ? shared : 0));
  Number<E>* const packed = memory + size * threads;
  const Packed<E> all = {packed, x.n, x.k};
  if (share) {
    parallel_pieces(threads, products<E>().pack_pieces(x.n, x.k),
                    [=](int64_t piece, int) { products<E>().pack(x.trans_b, x.n, x.k, x.b, x.ldb, packed, piece); });
    x.packed = &all;
  }
  parallel_pieces(threads, grid.rows * grid.cols, [=](int64_t part, int thread) {
    const int64_t row = part / grid.cols, col = part % grid.cols;
    x.run(start_of(row, grid.rows, x.m, row_step), start_of(row + 1, grid.rows, x.m, row_step),
          start_of(col, grid.cols, x.n, col_step), start_of(col + 1, grid.cols, x.n, col_step), memory + thread * size);
  });
}

/// x, which has rows and columns.
template <class E>
void multiply_nonempty(const Product<E>& x) {
  add_flops(flops(x.m, x.n, x.k));
  const int threads = threads_for(x.m * ((x.n + 15) / 16), cost(x.m, x.n, x.k));
  if (threads > 1 || (!x.c && x.m * x.n > kMostRounded)) return multiply_parts(x, threads);
  x.run(0, x.m, 0, x.n, workspace<Number<E>>(x.memory(x.m, x.n)));
}

template <class E>
void multiply(const Product<E>& x) {
  if (x.m <= 0 || x.n <= 0) return;
  if (x.n == 1 && x.m > 1 && x.ldc == 1 && (x.trans_b || x.ldb == 1)) {
    // One column: as one row, which is read as fast as memory gives it.
    multiply_nonempty<E>({.trans_a = false,
                          .trans_b = !x.trans_a,
                          .m = 1,
                          .n = x.m,
                          .k = x.k,
                          .a = x.b,
                          .lda = x.k,
                          .b = x.a,
                          .ldb = x.lda,
                          .packed = nullptr,
                          .c = x.c,
                          .ldc = x.m,
                          .accumulate = x.accumulate});
    x.epilogue(x.c, 1, 0, x.m, 0, 1);
  } else {
    multiply_nonempty(x);
  }
}

/// The batch of gemm_batched, of which `product` is the first without its offsets.
template <class E>
void multiply_batch(int64_t batch, const Product<E>& product, const int64_t* a_offsets, const int64_t* b_offsets,
                    const int64_t* c_offsets) {
  if (product.m <= 0 || product.n <= 0) return;
  const auto at = [=](int64_t i) {
    Product<E> one = product;
    one.a = product.a + a_offsets[i];
    one.b = product.b + b_offsets[i];
    one.c = product.c + c_offsets[i];
    return one;
  };
  const int threads = threads_for(batch, cost(product.m, product.n, product.k) * static_cast<double>(batch));
  if (threads == 1 || batch < num_threads()) {  // few products: each with all threads
    for (int64_t i = 0; i < batch; ++i) multiply(at(i));
    return;
  }
  add_flops(flops(product.m, product.n, product.k) * static_cast<double>(batch));
  const int64_t size = product.memory(product.m, product.n);
  auto* const memory = workspace<Number<E>>(size * threads);
  parallel_pieces(threads, batch,
                  [&, memory](int64_t i, int thread) { at(i).run(0, product.m, 0, product.n, memory + thread * size); });
}

}  // namespace

template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
          int64_t ldc, bool accumulate, const Epilogue& epilogue) {
  multiply<T>({trans_a, trans_b, m, n, k, a, lda, b, ldb, nullptr, c, ldc, accumulate, epilogue});
}
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda, Bf16Source b, int64_t ldb,
          float* c, int64_t ldc, bool accumulate, const Epilogue& epilogue) {
  multiply<BFloat16>({trans_a, trans_b, m, n, k, a, lda, b, ldb, nullptr, c, ldc, accumulate, epilogue});
}

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda, Bf16Source b, int64_t ldb,
          BFloat16* c, const Epilogue& epilogue) {
  if (m <= 0 || n <= 0) return;
  const Rounding rounding = {epilogue, c, n};
  multiply_nonempty<BFloat16>(
      {trans_a, trans_b, m, n, k, a, lda, b, ldb, nullptr, nullptr, n, false, {&rounding, Rounding::call}});
}

template <class E>
int64_t packed_size(int64_t n, int64_t k) {
  return padded(products<E>().packed_size(n, k));
}

template <class E>
void pack(bool trans_b, int64_t n, int64_t k, Source<E> b, int64_t ldb, Number<E>* to) {
  for (int64_t piece = 0; piece < products<E>().pack_pieces(n, k); ++piece)
    products<E>().pack(trans_b, n, k, b, ldb, to, piece);
}

template <class E>
void gemm(int64_t m, int64_t n, int64_t k, Source<E> a, int64_t lda, const Packed<E>& b, Number<E>* c, int64_t ldc) {
  add_flops(flops(m, n, k));
  products<E>().gemm(false, false, m, n, k, a, lda, {}, 0, &b, c, ldc, false, {},
                     workspace<Number<E>>(products<E>().workspace(m, n, k, false)));
}

template <class T>
void gemm_batched(int64_t batch, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                  const int64_t* a_offsets, const T* b, int64_t ldb, const int64_t* b_offsets, T* c, int64_t ldc,
                  const int64_t* c_offsets, bool accumulate) {
  multiply_batch<T>(batch, {trans_a, trans_b, m, n, k, a, lda, b, ldb, nullptr, c, ldc, accumulate}, a_offsets, b_offsets,
                    c_offsets);
}
void gemm_batched(int64_t batch, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda,
                  const int64_t* a_offsets, Bf16Source b, int64_t ldb, const int64_t* b_offsets, float* c, int64_t ldc,
                  const int64_t* c_offsets, bool accumulate) {
  multiply_batch<BFloat16>(batch, {trans_a, trans_b, m, n, k, a, lda, b, ldb, nullptr, c, ldc, accumulate}, a_offsets,
                           b_offsets, c_offsets);
}

void gemv(int64_t batch, bool trans_a, int64_t m, int64_t k, const float* a, int64_t lda, const int64_t* a_offsets,
          const float* x, float* y) {
  constexpr int64_t rows_of_piece = 16;  // which share a cache line of y
  add_flops(flops(batch * m, 1, k));
  const int64_t pieces = (m + rows_of_piece - 1) / rows_of_piece;
  parallel_for(batch * pieces, cost(1, rows_of_piece, k), [=](int64_t piece, int64_t end) {
    for (int64_t stop; piece < end; piece = stop) {  // those of one matrix at once
      const int64_t matrix = piece / pieces;
      stop = std::min(end, (matrix + 1) * pieces);
      const int64_t row = (piece - matrix * pieces) * rows_of_piece,
                    rows = std::min(m, (stop - matrix * pieces) * rows_of_piece) - row;
      const float* const from = a + a_offsets[matrix] + (trans_a ? row : row * lda);
      (trans_a ? table<float>().dot_columns : table<float>().dot_rows)(from, lda, x, y + matrix * m + row, rows, k);
    }
  });
}

#define ONESTEP_INSTANTIATE(E)                                                   \
  template int64_t packed_size<E>(int64_t, int64_t);                             \
  template void pack<E>(bool, int64_t, int64_t, Source<E>, int64_t, Number<E>*); \
  template void gemm<E>(int64_t, int64_t, int64_t, Source<E>, int64_t, const Packed<E>&, Number<E>*, int64_t);
ONESTEP_INSTANTIATE(float)
ONESTEP_INSTANTIATE(double)
ONESTEP_INSTANTIATE(BFloat16)
#undef ONESTEP_INSTANTIATE

#define ONESTEP_INSTANTIATE(T)                                                                                            \
  template void gemm(bool, bool, int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool,      \
                     const Epilogue&);                                                                                    \
  template void gemm_batched(int64_t, bool, bool, int64_t, int64_t, int64_t, const T*, int64_t, const int64_t*, const T*, \
                             int64_t, const int64_t*, T*, int64_t, const int64_t*, bool);
ONESTEP_INSTANTIATE(float)
ONESTEP_INSTANTIATE(double)
#undef ONESTEP_INSTANTIATE

}  // namespace onestep::kernels
