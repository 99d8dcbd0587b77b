// Row kernels of one instruction set: reductions, softmax, layer norm. A row is summed in 16 lanes (lane l takes columns l,
// l + 16, ...) that one fixed tree adds up; a sum over rows goes in chunks of fixed size.
#include "autograd/kernels/table.h"
#include "autograd/kernels/vec_math.h"

#if defined(ONESTEP_WASM)  // whose code is downloaded
#define ONESTEP_RARE __attribute__((minsize))
#else
#define ONESTEP_RARE ONESTEP_FLATTEN
#endif

namespace onestep::kernels {
namespace {

/// Vectors of a row, and chunks of them, in a chunk of pairwise summation, so that rounding errors grow slower; the elements of
/// both.
constexpr int64_t kChunk = 64, kSmall = kChunk * kLanes, kLarge = kChunk * kSmall;

/// The first n lanes of x, `rest` in the others.
ONESTEP_INLINE Vec keep_first(Vec x, int64_t n, float rest) { return n == kLanes ? x : select(first_lanes(n), x, splat(rest)); }

/// Folds `step(total, i, count)` over the vectors of columns [begin, end); count is 16, and less in the last one.
template <class F>
ONESTEP_INLINE Vec over_row(int64_t begin, int64_t end, Vec total, F step) {
  for (int64_t i = begin; i < end; i += kLanes) total = step(total, i, end - i < kLanes ? end - i : kLanes);
  return total;
}

/// Calls add(total, begin, end) for chunks of [0, n), each from zero, and adds up chunks of these.
template <class Total, class F>
ONESTEP_INLINE Total sum_in_chunks(int64_t n, F add) {
  Total total{};
  for (int64_t large = 0; large < n; large += kLarge) {
    const int64_t large_end = n - large < kLarge ? n : large + kLarge;
    Total part{};
    for (int64_t i = large; i < large_end; i += kSmall) {
      Total chunk{};
      add(chunk, i, large_end - i < kSmall ? large_end : i + kSmall);
      part = part + chunk;
    }
    total = total + part;
  }
  return total;
}

/// over_row in chunks, and the lanes added up.
template <class F>
ONESTEP_INLINE float sum_row(int64_t n, F step) {
  return sum(sum_in_chunks<Vec>(n, [=](Vec& total, int64_t begin, int64_t end) { total = over_row(begin, end, total, step); }));
}

ONESTEP_FLATTEN float row_sum(const float* x, int64_t n) {
  return sum_row(n, [=](Vec total, int64_t i, int64_t count) { return total + load_upto(x + i, count); });
}

/// y[r] = few(first n lanes of row r) for rows of one vector, which are many: the loops over vectors take longer. Else
/// many(row), with the same bits.
template <class FEW, class MANY>
ONESTEP_INLINE void each_row(const float* x, float* y, int64_t rows, int64_t n, FEW few, MANY many) {
#if defined(ONESTEP_WASM)
  constexpr int64_t most = -1;
#else
  constexpr int64_t most = kLanes;
#endif
  for (int64_t r = 0; r < rows; ++r, x += n) y[r] = n <= most ? few(load_upto(x, n)) : many(x, n);
}

ONESTEP_RARE void row_sums(const float* x, float* y, int64_t rows, int64_t n) {
  each_row(
      x, y, rows, n, [](Vec v) { return sum(splat(0.0f) + v); }, row_sum);
}

/// Widened chunk by chunk: what is widened stays in the L1 cache. Two chunks at once, as each addition to a chunk waits for the
/// one before it.
ONESTEP_FLATTEN float sum_widened(void (*widen)(const uint16_t* x, float* y, int64_t n), const uint16_t* x, int64_t n) {
  Vec next{};
  bool known = false;  // the next chunk's sum
  return sum(sum_in_chunks<Vec>(n, [&](Vec& total, int64_t begin, int64_t end) {
    alignas(64) float wide[2 * kSmall];
    if (known) {
      total = next;
      known = false;
    } else if (n - begin >= 2 * kSmall) {
      widen(x + begin, wide, 2 * kSmall);
      next = splat(0.0f);
      known = true;
      for (int64_t i = 0; i < kSmall; i += kLanes) {
        total = total + load(wide + i);
        next = next + load(wide + kSmall + i);
      }
    } else {
      widen(x + begin, wide, end - begin);
      total = over_row(0, end - begin, total,
                       [&](Vec lanes, int64_t i, int64_t count) { return lanes + load_upto(wide + i, count); });
    }
  }));
}

ONESTEP_FLATTEN float dot(const float* a, const float* b, int64_t n) {
  return sum_row(
      n, [=](Vec total, int64_t i, int64_t count) { return fma(load_upto(a + i, count), load_upto(b + i, count), total); });
}

ONESTEP_RARE float centered_dot(const float* a, float a_center, const float* b, float b_center, int64_t n) {
  const Vec from_a = splat(a_center), from_b = splat(b_center);
  return sum_row(n, [=](Vec total, int64_t i, int64_t count) {
    return fma(keep_first(load_upto(a + i, count) - from_a, count, 0.0f), load_upto(b + i, count) - from_b, total);
  });
}

ONESTEP_RARE void dot_rows(const float* a, int64_t ld, const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) y[i] = dot(a + i * ld, x, n);
}

/// The 16 lanes of the sums of some columns.
template <int64_t COLUMNS>
struct ColumnLanes {
  alignas(64) float lane[kLanes][COLUMNS];

  void add(int64_t to, const float* from) {
    for (int64_t c = 0; c < COLUMNS; c += kLanes) store(lane[to] + c, load(lane[to] + c) + load(from + c));
  }
  ColumnLanes operator+(const ColumnLanes& x) const {
    ColumnLanes y = *this;
    for (int64_t l = 0; l < kLanes; ++l) y.add(l, x.lane[l]);
    return y;
  }
};

/// y[c] = dot(column c of a, x) for c < cols <= COLUMNS, all at once, row by row.
template <int64_t COLUMNS>
ONESTEP_RARE void dot_column_block(const float* a, int64_t ld, const float* x, float* y, int64_t cols, int64_t n) {
  constexpr float zeros[COLUMNS] = {};
  auto lanes = sum_in_chunks<ColumnLanes<COLUMNS>>(n, [=](ColumnLanes<COLUMNS>& total, int64_t row, int64_t end) {
    for (; row < end; ++row) {
      float* const to = total.lane[row % kLanes];
      for (int64_t c = 0; c < cols; c += kLanes)
        store(to + c, fma(load_upto(a + row * ld + c, cols - c), splat(x[row]), load(to + c)));
    }
    for (; row % kLanes != 0; ++row) total.add(row % kLanes, zeros);  // beyond the end 0 is added, as in dot()
  });
  for (int64_t half = kLanes / 2; half > 0; half /= 2)  // the tree of sum()
    for (int64_t l = 0; l < half; ++l) lanes.add(l, lanes.lane[l + half]);
  for (int64_t c = 0; c < cols; ++c) y[c] = lanes.lane[0][c];
}

void dot_columns(const float* a, int64_t ld, const float* x, float* y, int64_t cols, int64_t n) {
#if defined(ONESTEP_WASM)
  constexpr int64_t wide = kLanes;
#else
  constexpr int64_t wide = 128;  // long pieces of rows are read, and the sums stay in the L1 cache
#endif
  int64_t c = 0;
  for (; c + wide <= cols; c += wide) dot_column_block<wide>(a + c, ld, x, y + c, wide, n);
  for (; c < cols; c += kLanes) dot_column_block<kLanes>(a + c, ld, x, y + c, cols - c < kLanes ? cols - c : kLanes, n);
}

ONESTEP_RARE float sum_squares(const float* x, int64_t n) { return dot(x, x, n); }

ONESTEP_RARE float sum_rounded_squares(const float* x, int64_t n) {
  return sum_row(n, [=](Vec total, int64_t i, int64_t count) {
    const Vec v = load_upto(x + i, count);
    return total + v * v;
  });
}

constexpr auto kAsIs = [](Vec x) { return x; };

/// max(f(x)). NaN is passed over, so the lanes can be compared with one instruction.
template <class F>
ONESTEP_INLINE float max_ignoring_nan(const float* x, int64_t n, F f) {
  return max(over_row(0, n, splat(-kInf), [=](Vec best, int64_t i, int64_t count) {
    return max(keep_first(f(load_upto(x + i, count)), count, -kInf), best);
  }));
}

/// The best elements of lanes, with `better` of two, which is NaN where one is, and `worst` of all.
template <class BETTER>
ONESTEP_INLINE Vec row_extremum(const float* x, int64_t n, float worst, BETTER better) {
  const auto step = [=](Vec best, int64_t i, int64_t count) {
    return better(keep_first(load_upto(x + i, count), count, worst), best);
  };
  // Four at once, since each comparison waits for the one before.
  Vec a = splat(worst), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = step(a, i, kLanes);
    b = step(b, i + kLanes, kLanes);
    c = step(c, i + 2 * kLanes, kLanes);
    d = step(d, i + 3 * kLanes, kLanes);
  }
  return over_row(i, n, better(better(a, b), better(c, d)), step);
}
ONESTEP_INLINE float largest(Vec x) { return any(is_nan(x)) ? __builtin_nanf("") : max(x); }
ONESTEP_INLINE float least(Vec x) { return any(is_nan(x)) ? __builtin_nanf("") : -max(splat(-0.0f) - x); }

ONESTEP_FLATTEN float row_max(const float* x, int64_t n) {
  return largest(row_extremum(x, n, -kInf, [](Vec a, Vec b) { return max_nan(a, b); }));
}
ONESTEP_FLATTEN float row_min(const float* x, int64_t n) {
  return least(row_extremum(x, n, kInf, [](Vec a, Vec b) { return min_nan(a, b); }));
}
ONESTEP_RARE void row_maxima(const float* x, float* y, int64_t rows, int64_t n) {
  each_row(
      x, y, rows, n, [=](Vec v) { return largest(keep_first(v, n, -kInf)); }, row_max);
}
ONESTEP_RARE void row_minima(const float* x, float* y, int64_t rows, int64_t n) {
  each_row(
      x, y, rows, n, [=](Vec v) { return least(keep_first(v, n, kInf)); }, row_min);
}

ONESTEP_FLATTEN int64_t argmax(const float* x, int64_t n) {
  const float best = row_max(x, n);
  int64_t i = 0;
  while (i + kLanes <= n && all(load(x + i) < splat(best))) i += kLanes;
  while (i + 1 < n && (best == best ? x[i] != best : x[i] == x[i])) ++i;
  return i;
}

// --- softmax -----------------------------------------------------------------------------------------------------------

/// sum(exp(f(x) - m)); with y also y = exp(f(x) - m).
template <class F>
ONESTEP_INLINE float sum_exp(const float* x, float m, float* y, int64_t n, F f) {
  return sum_row(n, [=](Vec total, int64_t i, int64_t count) {
    const Vec e = exp(keep_first(f(load_upto(x + i, count)) - splat(m), count, 0.0f));
    if (y) store_upto(y + i, e, count);
    return total + keep_first(e, count, 0.0f);
  });
}

/// softmax of the first n lanes with the bits of a row of n: short rows are many, and the loops over vectors take longer.
ONESTEP_INLINE Vec softmax_lanes(Vec x, int64_t n) {
  const float m = max(max(keep_first(x, n, -kInf), splat(-kInf)));
  const Vec e = exp(keep_first(x - splat(m), n, 0.0f));
  return e * splat(1.0f / sum(keep_first(e, n, 0.0f)));
}

/// y = softmax(f(x)) of one row.
template <class F>
ONESTEP_INLINE void softmax_row(const float* x, float* y, int64_t n, F f) {
  if (n <= kLanes) return store_upto(y, softmax_lanes(f(load_upto(x, n)), n), n);
  // Times the reciprocal, as PyTorch: a division would round some of the book's digits otherwise.
  const Vec scale = splat(1.0f / sum_exp(x, max_ignoring_nan(x, n, f), y, n, f));
  map(y, y, n, [=](Vec e) { return e * scale; });
}

ONESTEP_FLATTEN void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) softmax_row(x, y, cols, kAsIs);
}

ONESTEP_RARE void softmax_grad_rows(const float* y, const float* dy, float* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const Vec mean = splat(dot(y, dy, cols));
    map2(y, dy, dx, cols, [=](Vec p, Vec d) { return p * (d - mean); });
  }
}

/// f(row, span) for every row, and 0 around its span.
template <class F>
ONESTEP_INLINE void over_spans(float* x, int64_t ld, const Span* spans, int64_t rows, Span block, F f) {
  const auto zero = [](float* to, int64_t n) { map(to, to, n, [](Vec) { return splat(0.0f); }); };
  for (int64_t r = 0; r < rows; ++r, x += ld) {
    const Span span = spans[r];
    zero(x + block.begin, span.begin - block.begin);
    if (span.end > span.begin) f(r, span, x + span.begin);
    zero(x + span.end, block.end - span.end);
  }
}

ONESTEP_FLATTEN void softmax_spans(float* x, int64_t ld, const Span* spans, int64_t rows, float scale, Span block) {
  over_spans(x, ld, spans, rows, block, [=](int64_t, Span span, float* row) {
    softmax_row(row, row, span.end - span.begin, [=](Vec v) { return v * splat(scale); });
  });
}

ONESTEP_FLATTEN void softmax_grad_spans(const float* y, float* dx, int64_t ld, const Span* spans, int64_t rows, float scale,
                                        Span block) {
  over_spans(dx, ld, spans, rows, block, [=](int64_t r, Span span, float* row) {
    const float* const weights = y + r * ld + span.begin;
    const int64_t n = span.end - span.begin;
    if (n <= kLanes) {
      const Vec p = load_upto(weights, n), d = load_upto(row, n), mean = splat(sum(fma(p, d, splat(0.0f))));
      return store_upto(row, p * (d - mean) * splat(scale), n);
    }
    const Vec mean = splat(dot(weights, row, n));
    map2(weights, row, row, n, [=](Vec p, Vec d) { return p * (d - mean) * splat(scale); });
  });
}

ONESTEP_INLINE float log_sum_exp(const float* x, float m, int64_t n) {
  float rest[kLanes];
  store(rest, log(splat(sum_exp(x, m, nullptr, n, kAsIs))));
  return rest[0];
}

ONESTEP_RARE void log_softmax_rows(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float m = max_ignoring_nan(x, cols, kAsIs);
    const Vec shift = splat(m), rest = splat(log_sum_exp(x, m, cols));
    map(x, y, cols, [=](Vec v) { return (v - shift) - rest; });
  }
}

ONESTEP_RARE void log_softmax_grad_rows(const float* y, const float* dy, float* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const Vec total = splat(row_sum(dy, cols));
    map2(y, dy, dx, cols, [=](Vec lp, Vec d) { return fnma(exp(lp), total, d); });
  }
}

ONESTEP_RARE void logsumexp_rows(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    const float largest = max_ignoring_nan(x, cols, kAsIs);
    const float m = __builtin_fabsf(largest) == kInf ? 0.0f : largest;  // as torch: inf - inf would be NaN
    y[r] = m + log_sum_exp(x, m, cols);
  }
}

// --- layer norm --------------------------------------------------------------------------------------------------------

ONESTEP_FLATTEN void layer_norm_rows(const float* x, const float* weight, const float* bias, float eps, float* y, float* mean,
                                     float* rstd, int64_t rows, int64_t cols) {
  const auto n = static_cast<float>(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    mean[r] = row_sum(x, cols) / n;
    const Vec mu = splat(mean[r]);
    const float squares = sum_row(cols, [=](Vec total, int64_t i, int64_t count) {
      const Vec d = keep_first(load_upto(x + i, count) - mu, count, 0.0f);
      return fma(d, d, total);
    });
    rstd[r] = 1.0f / __builtin_sqrtf(squares / n + eps);
    const Vec scale_by = splat(rstd[r]);
    over_row(0, cols, splat(0.0f), [=](Vec unused, int64_t i, int64_t count) {
      Vec h = (load_upto(x + i, count) - mu) * scale_by;
      if (weight) h = h * load_upto(weight + i, count);
      if (bias) h = h + load_upto(bias + i, count);
      store_upto(y + i, h, count);
      return unused;
    });
  }
}

/// Two sums at once.
struct TwoSums {
  Vec first{}, second{};
  ONESTEP_INLINE TwoSums operator+(const TwoSums& x) const { return {first + x.first, second + x.second}; }
};

ONESTEP_FLATTEN void layer_norm_grad(const float* x, const float* weight, const float* mean, const float* rstd, const float* dy,
                                     float* dx, float* dweight, float* dbias, int64_t rows, int64_t cols) {
  const auto n = static_cast<float>(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, dy += cols) {
    const Vec mu = splat(mean[r]), scale_by = splat(rstd[r]);
    const auto g_at = [=](int64_t i, int64_t count) {
      const Vec d = load_upto(dy + i, count);
      return weight ? d * load_upto(weight + i, count) : d;
    };
    const auto h_at = [=](int64_t i, int64_t count) { return (load_upto(x + i, count) - mu) * scale_by; };
    if (dx) {
      const auto sums = sum_in_chunks<TwoSums>(cols, [=](TwoSums& total, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kLanes) {
          const int64_t count = end - i < kLanes ? end - i : kLanes;
          const Vec g = g_at(i, count);
          total = {total.first + g, fma(g, keep_first(h_at(i, count), count, 0.0f), total.second)};
        }
      });
      const Vec avg_g = splat(sum(sums.first) / n), avg_gh = splat(sum(sums.second) / n);
      for (int64_t i = 0; i < cols; i += kLanes) {
        const int64_t count = cols - i < kLanes ? cols - i : kLanes;
        store_upto(dx + i, scale_by * fnma(h_at(i, count), avg_gh, g_at(i, count) - avg_g), count);
      }
      dx += cols;
    }
    for (int64_t i = 0; (dweight || dbias) && i < cols; i += kLanes) {  // of a row that is in the L1 cache
      const int64_t count = cols - i < kLanes ? cols - i : kLanes;
      const Vec d = load_upto(dy + i, count);
      if (dweight) store_upto(dweight + i, fma(d, h_at(i, count), load_upto(dweight + i, count)), count);
      if (dbias) store_upto(dbias + i, load_upto(dbias + i, count) + d, count);
    }
  }
}

// --- sums over rows ----------------------------------------------------------------------------------------------------

/// y[c] = the sum over r of term(r, c, count) for VECS vectors of columns.
template <int VECS, class F>
ONESTEP_INLINE void sum_block_over_rows(float* y, int64_t rows, int64_t c, int64_t count, F term) {
  Vec total[VECS];
#pragma GCC unroll 4
  for (Vec& t : total) t = splat(0.0f);
  for (int64_t r0 = 0; r0 < rows; r0 += kSumRows) {
    const int64_t end = rows - r0 < kSumRows ? rows : r0 + kSumRows;
    Vec part[VECS];
#pragma GCC unroll 4
    for (Vec& t : part) t = splat(0.0f);
    for (int64_t r = r0; r < end; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < VECS; ++v) part[v] = term(part[v], r, c + v * kLanes, count);
    }
#pragma GCC unroll 4
    for (int v = 0; v < VECS; ++v) total[v] = total[v] + part[v];
  }
#pragma GCC unroll 4
  for (int v = 0; v < VECS; ++v) store_upto(y + c + v * kLanes, total[v], count);
}

/// The same for all columns: four vectors at a time, so that a row is read in longer pieces.
template <class F>
ONESTEP_INLINE void sum_over_rows(float* y, int64_t rows, int64_t cols, F term) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= cols; c += 4 * kLanes) sum_block_over_rows<4>(y, rows, c, kLanes, term);
  for (; c < cols; c += kLanes) sum_block_over_rows<1>(y, rows, c, cols - c < kLanes ? cols - c : kLanes, term);
}

ONESTEP_RARE void sum_rows(const float* x, float* y, int64_t rows, int64_t cols, int64_t ld) {
  sum_over_rows(y, rows, cols,
                [=](Vec total, int64_t r, int64_t c, int64_t count) { return total + load_upto(x + r * ld + c, count); });
}

}  // namespace

namespace ONESTEP_ISA_NAME {

void fill_rows(Table<float>& t) {
  t.row_sums = row_sums;
  t.sum_widened = sum_widened;
  t.sum_squares = sum_squares;
  t.sum_rounded_squares = sum_rounded_squares;
  t.dot = dot;
  t.dot_rows = dot_rows;
  t.dot_columns = dot_columns;
  t.centered_dot = centered_dot;
  t.row_maxima = row_maxima;
  t.row_minima = row_minima;
  t.argmax = argmax;
  t.sum_rows = sum_rows;
  t.softmax_rows = softmax_rows;
  t.log_softmax_rows = log_softmax_rows;
  t.logsumexp_rows = logsumexp_rows;
  t.softmax_grad_rows = softmax_grad_rows;
  t.log_softmax_grad_rows = log_softmax_grad_rows;
  t.softmax_spans = softmax_spans;
  t.softmax_grad_spans = softmax_grad_spans;
  t.layer_norm_rows = layer_norm_rows;
  t.layer_norm_grad = layer_norm_grad;
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
