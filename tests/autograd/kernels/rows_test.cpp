// Row kernels: reductions, softmax and layer norm against the double loops, at every width and for special rows.
#include <array>

#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

TEST_CASE("kernels: reductions of a row agree with the double loops at every size") {
  for (const int64_t n : sizes()) {
    CAPTURE(n);
    const Floats x = random_floats(n, -3, 3), b = random_floats(n, -1, 1, 8);
    const Doubles wide = widened(x), wide_b = widened(b);
    const auto tolerance = 1e-6 * std::sqrt(static_cast<double>(n) + 1) * 10;
    CHECK(std::fabs(sum(x.data(), n) - sum(wide.data(), n)) <= tolerance);
    CHECK(std::fabs(dot(x.data(), b.data(), n) - dot(wide.data(), wide_b.data(), n)) <= tolerance);
    CHECK(std::fabs(sum_squares(x.data(), n) - sum_squares(wide.data(), n)) <= 1e-6 * static_cast<double>(n) * 3);
    CHECK(std::fabs(centered_dot(x.data(), 0.5f, b.data(), -0.25f, n) -
                    centered_dot(wide.data(), 0.5, wide_b.data(), -0.25, n)) <= tolerance);
    Floats squares(x.size());
    mul(x.data(), 1, x.data(), 1, squares.data(), n);
    CHECK(sum_rounded_squares(x.data(), n) == sum(squares.data(), n));
    CHECK(max(x.data(), n) == max(wide.data(), n));
    CHECK(min(x.data(), n) == min(wide.data(), n));
    if (n > 0) CHECK(argmax(x.data(), n) == argmax(wide.data(), n));
    check_same_bits([&] {
      return Floats{sum(x.data(), n),
                    dot(x.data(), b.data(), n),
                    sum_squares(x.data(), n),
                    sum_rounded_squares(x.data(), n),
                    max(x.data(), n),
                    min(x.data(), n),
                    centered_dot(x.data(), 0.5f, b.data(), -0.25f, n)};
    });
  }
}

TEST_CASE("kernels: a matrix times a vector has the bits of dot products, however it lies") {
  const std::array<int64_t, 2> shapes[] = {{1, 1},      {5, 0},     {3, 40},    {64, 17},  {129, 1024},
                                           {200, 1025}, {33, 3000}, {300, 300}, {2, 70001}};
  for (const auto& shape : shapes) {
    const int64_t m = shape[0], k = shape[1];
    CAPTURE(m);
    CAPTURE(k);
    const int64_t row = k + 3, col = m + 5;  // the leading dimensions
    const Floats a = random_floats(m * row, -1, 1), x = random_floats(k, -1, 1, 8);
    Floats transposed(static_cast<size_t>(k * col));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) transposed[static_cast<size_t>(p * col + i)] = a[static_cast<size_t>(i * row + p)];
    Floats want(static_cast<size_t>(m));
    for (int64_t i = 0; i < m; ++i) want[static_cast<size_t>(i)] = dot(a.data() + i * row, x.data(), k);
    const Floats once = want;
    want.insert(want.end(), once.begin(), once.end());
    const auto product = [&](bool trans_a) {
      const int64_t starts[] = {0, 0};  // the same matrix twice
      Floats y(want.size());
      gemv(2, trans_a, m, k, (trans_a ? transposed : a).data(), trans_a ? col : row, starts, x.data(), y.data());
      return y;
    };
    CHECK(first_difference(product(true), want) == -1);
    check_same_bits([&] { return product(false); });
    check_same_bits([&] { return product(true); });
  }
  // A negative sum that is too small for a float is -0, and 0 after another term of 0, as beyond the end of a row.
  const Floats tiny = {-1e-30f, 0, 0}, factors = {1e-30f, 0, 0};
  float by_rows = 1, by_columns = 1;
  const int64_t start = 0;
  gemv(1, false, 1, 1, tiny.data(), 1, &start, factors.data(), &by_rows);
  gemv(1, true, 1, 1, tiny.data(), 1, &start, factors.data(), &by_columns);
  CHECK(std::signbit(by_rows) == std::signbit(by_columns));
}

TEST_CASE("kernels: a long sum keeps its accuracy") {
  const Floats x(10'000'000, 0.1f);
  CHECK(sum(x.data(), 10'000'000) == doctest::Approx(1e6).epsilon(5e-6));
}

TEST_CASE("kernels: max and argmax find NaN first") {
  for (const int64_t n : {1, 5, 16, 17, 40}) {
    for (int64_t at = 0; at < n; ++at) {
      Floats x = random_floats(n, -3, 3);
      x[static_cast<size_t>(at)] = kNaN;
      CHECK(std::isnan(max(x.data(), n)));
      CHECK(std::isnan(min(x.data(), n)));
      CHECK(argmax(x.data(), n) == at);
      x[static_cast<size_t>(at)] = 5;
      CHECK(max(x.data(), n) == 5);
      CHECK(argmax(x.data(), n) == at);
    }
  }
  CHECK(max(Floats{-kInfinity, -kInfinity}.data(), 2) == -kInfinity);
  CHECK(argmax(Floats{-kInfinity, -kInfinity}.data(), 2) == 0);
  CHECK(max<float>(nullptr, 0) == -kInfinity);
  CHECK(min<float>(nullptr, 0) == kInfinity);
}

struct Rows {
  std::string name;
  void (*narrow)(const float*, float*, int64_t, int64_t);
  void (*wide)(const double*, double*, int64_t, int64_t);
  bool one_a_row;
};
const Rows kRows[] = {{"softmax", softmax_rows, softmax_rows, false},
                      {"log_softmax", log_softmax_rows, log_softmax_rows, false},
                      {"logsumexp", logsumexp_rows, logsumexp_rows, true}};

TEST_CASE("kernels: softmax rows agree with the double loops at every width") {
  for (const Rows& f : kRows) {
    CAPTURE(f.name);
    for (const int64_t cols : sizes()) {
      if (cols == 0) continue;
      CAPTURE(cols);
      const int64_t rows = cols > 5000 ? 1 : 5, outputs = f.one_a_row ? rows : rows * cols;
      const Floats x = random_floats(rows * cols, -4, 4);
      Floats y(static_cast<size_t>(outputs) + 1, 7.0f);
      Doubles want(static_cast<size_t>(outputs));
      f.narrow(x.data(), y.data(), rows, cols);
      f.wide(widened(x).data(), want.data(), rows, cols);
      CHECK(y.back() == 7.0f);
      y.pop_back();
      check_close(y, want, 2e-6, f.name == "softmax" ? 1e-30 : 2e-6);
      if (f.one_a_row) continue;
      Floats in_place = x;
      f.narrow(in_place.data(), in_place.data(), rows, cols);
      CHECK(first_difference(in_place, y) == -1);
    }
    for (const int64_t cols : {3, 65, 512}) {
      check_same_bits([&] {
        const Floats x = random_floats(700 * cols, -4, 4);
        Floats y(x.size());
        f.narrow(x.data(), y.data(), 700, cols);
        return y;
      });
    }
  }
}

TEST_CASE("kernels: softmax rows with infinities and NaN") {
  for (const Rows& f : kRows) {
    CAPTURE(f.name);
    for (const int64_t cols : {1, 4, 16, 21}) {
      const auto n = static_cast<size_t>(cols);
      std::vector<Floats> specials(6, random_floats(cols, -1, 1));
      specials[0].assign(n, -kInfinity);
      specials[1][0] = kInfinity;
      specials[2][n / 2] = kNaN;
      specials[3].assign(n, 1e4f);
      specials[4].assign(n, -1e4f);
      specials[5][n - 1] = -kInfinity;
      for (size_t s = 0; s < specials.size(); ++s) {
        CAPTURE(s);
        Floats y(f.one_a_row ? 1 : n);
        Doubles want(y.size());
        f.narrow(specials[s].data(), y.data(), 1, cols);
        f.wide(widened(specials[s]).data(), want.data(), 1, cols);
        check_close(y, want, 1e-6, 1e-6);
      }
    }
  }
}

struct RowsGrad {
  std::string name;
  void (*narrow)(const float*, const float*, float*, int64_t, int64_t);
  void (*wide)(const double*, const double*, double*, int64_t, int64_t);
};
const RowsGrad kRowsGrads[] = {{"softmax", softmax_grad_rows, softmax_grad_rows},
                               {"log_softmax", log_softmax_grad_rows, log_softmax_grad_rows}};

TEST_CASE("kernels: softmax gradients agree with the double loops at every width") {
  for (const RowsGrad& f : kRowsGrads) {
    CAPTURE(f.name);
    for (const int64_t cols : sizes()) {
      if (cols > 5000) continue;
      CAPTURE(cols);
      const Floats y = random_floats(4 * cols, -1, 0.5f), dy = random_floats(4 * cols, -1, 1, 7);
      Floats dx(y.size());
      Doubles want(y.size());
      f.narrow(y.data(), dy.data(), dx.data(), 4, cols);
      f.wide(widened(y).data(), widened(dy).data(), want.data(), 4, cols);
      check_close(dx, want, 2e-6, 2e-5);
    }
    check_same_bits([&] {
      const Floats y = random_floats(900 * 130, 0, 1), dy = random_floats(900 * 130, -1, 1, 7);
      Floats dx(y.size());
      f.narrow(y.data(), dy.data(), dx.data(), 900, 130);
      return dx;
    });
  }
}

TEST_CASE("kernels: softmax on spans is softmax on each row's part and 0 elsewhere") {
  constexpr int64_t rows = 6, ld = 50;
  const Span spans[rows] = {{0, 41}, {0, 1}, {3, 3}, {7, 40}, {8, 24}, {40, 41}}, block = {0, 41};
  const Floats scores = random_floats(rows * ld, -4, 4), dy = random_floats(rows * ld, -1, 1, 5);
  Floats weights = scores, dx = dy;
  softmax_spans(weights.data(), ld, spans, rows, -0.75f, block);
  softmax_grad_spans(weights.data(), dx.data(), ld, spans, rows, -0.75f, block);
  Floats want = scores, want_dx = dy;
  for (int64_t r = 0; r < rows; ++r) {
    float *const row = want.data() + r * ld, *const grad = want_dx.data() + r * ld;
    const auto [begin, end] = spans[r];
    for (int64_t c = begin; c < end; ++c) row[c] *= -0.75f;
    if (end > begin) {
      softmax_rows(row + begin, row + begin, 1, end - begin);
      softmax_grad_rows(row + begin, grad + begin, grad + begin, 1, end - begin);
    }
    for (int64_t c = block.begin; c < block.end; ++c) {
      const bool inside = c >= begin && c < end;
      if (!inside) row[c] = 0;
      grad[c] = inside ? grad[c] * -0.75f : 0;
    }
  }
  CHECK(weights == want);
  CHECK(dx == want_dx);
  Doubles wide = widened(scores), wide_dx = widened(dy);
  softmax_spans(wide.data(), ld, spans, rows, -0.75, block);
  softmax_grad_spans(wide.data(), wide_dx.data(), ld, spans, rows, -0.75, block);
  check_close(weights, wide, 2e-6, 1e-6);
  check_close(dx, wide_dx, 2e-6, 2e-6);
  check_same_bits([&] {
    Floats again = scores;
    softmax_spans(again.data(), ld, spans, rows, -0.75f, block);
    return again;
  });
}

TEST_CASE("kernels: softmax of a short row is that of the row among masked neighbours") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (int64_t cols = 1; cols <= 16; ++cols) {
    for (const float first : {0.25f, -kInfinity, kInfinity, kNan}) {
      CAPTURE(cols);
      CAPTURE(first);
      Floats row = random_floats(cols, -4, 4), masked(40, -kInfinity);
      row[0] = first;
      std::copy(row.begin(), row.end(), masked.begin());
      softmax_rows(row.data(), row.data(), 1, cols);
      softmax_rows(masked.data(), masked.data(), 1, 40);
      CHECK(std::equal(row.begin(), row.end(), masked.begin(), same));
    }
  }
}

/// Everything layer norm computes, one after the other.
template <class T>
std::vector<T> layer_norm_all(const std::vector<T>& x, const std::vector<T>& dy, const T* weight, const T* bias, int64_t rows,
                              int64_t cols) {
  const auto r = static_cast<size_t>(rows), c = static_cast<size_t>(cols);
  std::vector<T> all(2 * r * c + 2 * r + 2 * c);
  T *y = all.data(), *dx = y + r * c, *mean = dx + r * c, *rstd = mean + r, *dweight = rstd + r, *dbias = dweight + c;
  layer_norm_rows(x.data(), weight, bias, T(1e-5), y, mean, rstd, rows, cols);
  layer_norm_grad(x.data(), weight, mean, rstd, dy.data(), dx, dweight, dbias, rows, cols);
  return all;
}

TEST_CASE("kernels: layer norm agrees with the double loops at every width") {
  for (const int64_t cols : sizes()) {
    if (cols == 0 || cols > 5000) continue;
    CAPTURE(cols);
    const int64_t rows = 3;
    const Floats x = random_floats(rows * cols, -3, 5), dy = random_floats(rows * cols, -1, 1, 6);
    const Floats weight = random_floats(cols, 0.5f, 2, 4), bias = random_floats(cols, -1, 1, 5);
    const Doubles wide_weight = widened(weight), wide_bias = widened(bias);
    const double tolerance = cols == 1 ? 1e-3 : cols < 4 ? 2e-4 : 3e-5;  // of nearly equal numbers 1 / std is large
    check_close(layer_norm_all(x, dy, weight.data(), bias.data(), rows, cols),
                layer_norm_all(widened(x), widened(dy), wide_weight.data(), wide_bias.data(), rows, cols), tolerance,
                tolerance);
    check_close(layer_norm_all<float>(x, dy, nullptr, nullptr, rows, cols),
                layer_norm_all<double>(widened(x), widened(dy), nullptr, nullptr, rows, cols), tolerance, tolerance);
  }
  for (const int64_t cols : {5, 64, 200}) {
    check_same_bits([&] {
      const Floats x = random_floats(1500 * cols, -3, 5), dy = random_floats(1500 * cols, -1, 1, 6);
      const Floats weight = random_floats(cols, 0.5f, 2, 4);
      return layer_norm_all(x, dy, weight.data(), weight.data(), 1500, cols);
    });
  }
}

TEST_CASE("kernels: column sums agree with the double loops") {
  for (const int64_t rows : {0, 1, 2, 255, 256, 257, 1000}) {
    for (const int64_t cols : {1, 3, 16, 63, 64, 65, 200}) {
      CAPTURE(rows);
      CAPTURE(cols);
      const Floats x = random_floats(rows * cols, -1, 1);
      Floats y(static_cast<size_t>(cols), 7.0f);
      Doubles want(y.size(), 7.0);
      sum_rows(x.data(), y.data(), rows, cols, cols);
      sum_rows(widened(x).data(), want.data(), rows, cols, cols);
      check_close(y, want, 1e-6, 1e-4);
    }
  }
  const Floats wide = random_floats(30000, -1, 1);  // [100, 300]: columns [40, 110) of it
  Floats y(70);
  Doubles want(y.size());
  sum_rows(wide.data() + 40, y.data(), 100, 70, 300);
  sum_rows(widened(wide).data() + 40, want.data(), 100, 70, 300);
  check_close(y, want, 1e-6, 1e-4);
  check_same_bits([&] {
    const Floats x = random_floats(3000 * 333, -1, 1);
    Floats sums(333);
    sum_rows(x.data(), sums.data(), 3000, 333, 333);
    return sums;
  });
}

}  // namespace
}  // namespace onestep::kernels
