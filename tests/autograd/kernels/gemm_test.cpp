// Matrix products: the order of additions that kernels.h promises, bit for bit, whatever the shape, layout, instruction set
// and number of threads, in floats and in doubles.
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

struct Case {
  bool trans_a, trans_b;
  int64_t m, n, k;
  int64_t extra = 0;  ///< added to every leading dimension
  bool accumulate = false;

  int64_t lda() const { return (trans_a ? m : k) + extra; }
  int64_t ldb() const { return (trans_b ? k : n) + extra; }
  int64_t ldc() const { return n + extra; }
};

/// Exactly the elements of `rows` rows of `cols`, so that a read beyond them is a read beyond the allocation.
template <class T>
std::vector<T> matrix(int64_t rows, int64_t cols, int64_t ld, uint32_t seed) {
  const Floats values = random_floats(rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols, -1, 1, seed);
  std::vector<T> x(values.begin(), values.end());
  for (T& v : x) v += v * v / 3;  // of all digits in double, too
  return x;
}
template <class T>
std::vector<T> left(const Case& c) {
  return matrix<T>(c.trans_a ? c.k : c.m, c.trans_a ? c.m : c.k, c.lda(), 1);
}
template <class T>
std::vector<T> right(const Case& c) {
  return matrix<T>(c.trans_b ? c.n : c.k, c.trans_b ? c.k : c.n, c.ldb(), 2);
}
template <class T>
std::vector<T> result(const Case& c) {
  return matrix<T>(c.m, c.n, c.ldc(), 3);
}

template <class T>
std::vector<T> product(const Case& c, const std::vector<T>& a, const std::vector<T>& b, std::vector<T> out) {
  gemm(c.trans_a, c.trans_b, c.m, c.n, c.k, a.data(), c.lda(), b.data(), c.ldb(), out.data(), c.ldc(), c.accumulate);
  return out;
}

/// The contract written down: fma in ascending k from zero in blocks of 256, the blocks added in order.
template <class T>
std::vector<T> promised(const Case& c, const std::vector<T>& a, const std::vector<T>& b, std::vector<T> out) {
  const auto at = [](const std::vector<T>& x, int64_t i) { return x[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      T& to = out[static_cast<size_t>(i * c.ldc() + j)];
      if (c.k == 0 && !c.accumulate) to = 0;
      for (int64_t p0 = 0; p0 < c.k; p0 += 256) {
        T block = 0;
        for (int64_t p = p0; p < std::min(c.k, p0 + 256); ++p) {
          block = std::fma(at(a, c.trans_a ? p * c.lda() + i : i * c.lda() + p),
                           at(b, c.trans_b ? j * c.ldb() + p : p * c.ldb() + j), block);
        }
        to = p0 == 0 && !c.accumulate ? block : to + block;
      }
    }
  }
  return out;
}

template <class T>
void check_promise(const Case& c) {
  CAPTURE(c.trans_a);
  CAPTURE(c.trans_b);
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(c.extra);
  CAPTURE(c.accumulate);
  const std::vector<T> a = left<T>(c), b = right<T>(c), old = result<T>(c);
  CHECK(first_difference(product(c, a, b, old), promised(c, a, b, old)) == -1);
}

TEST_CASE_TEMPLATE("kernels: gemm keeps its promise for small shapes and every layout", T, float, double) {
  for_each_isa([&] {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        for (const int64_t m : {1, 2, 5, 6, 7, 8, 9, 12, 13, 29}) {
          for (const int64_t n : {1, 3, 8, 15, 16, 17, 31, 33, 50}) {
            for (const int64_t k : {0, 1, 2, 7, 8, 9, 40}) {
              check_promise<T>({trans_a, trans_b, m, n, k});
              check_promise<T>({trans_a, trans_b, m, n, k, 3, true});
            }
          }
        }
      }
    }
  });
}

TEST_CASE_TEMPLATE("kernels: gemm keeps its promise across blocks", T, float, double) {
  for_each_isa([&] {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        check_promise<T>({trans_a, trans_b, 64, 65, 130, 1});
        check_promise<T>({trans_a, trans_b, 70, 65, 255});
        check_promise<T>({trans_a, trans_b, 37, 300, 257, 1});
        check_promise<T>({trans_a, trans_b, 3, 520, 600, 2, true});
        check_promise<T>({trans_a, trans_b, 90, 33, 513, 0, true});
        check_promise<T>({trans_a, trans_b, 1, 270, 300});
        check_promise<T>({trans_a, trans_b, 270, 1, 600, 0, true});
        for (const int64_t k : {264, 267}) {  // a right side that the L2 cache does not hold
          check_promise<T>({trans_a, trans_b, 1, 1003, k});
          check_promise<T>({trans_a, trans_b, 2, 1003, k, 0, true});
        }
        check_promise<T>({trans_a, trans_b, 6, 10, 3000, 1});
        if (trans_b) {  // read where it lies, by more rows than one register has lanes
          check_promise<T>({trans_a, trans_b, 19, 1003, 267});
          check_promise<T>({trans_a, trans_b, 9, 5, 53000, 0, true});
        } else {  // by several rows, and by one longer than its sums have room for
          check_promise<T>({trans_a, trans_b, 5, 1003, 267, 1, true});
          check_promise<T>({trans_a, trans_b, 1, 9001, 33});
        }
      }
    }
  });
}

TEST_CASE_TEMPLATE("kernels: gemm gives the same bits for every instruction set and number of threads", T, float, double) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const Case& c : {Case{trans_a, trans_b, 65, 130, 300}, Case{trans_a, trans_b, 200, 20, 260},
                            Case{trans_a, trans_b, 2, 700, 270}, Case{trans_a, trans_b, 700, 1, 270}}) {
        const std::vector<T> a = left<T>(c), b = right<T>(c), old = result<T>(c);
        check_same_bits([&] { return product(c, a, b, old); });
      }
    }
  }
}

TEST_CASE_TEMPLATE("kernels: gemm packs the right side once for all threads whatever its width", T, float, double) {
  for (const bool trans_b : {false, true}) {
    for (const int64_t n : {7, 8, 9, 32, 96, 97, 104, 105, 112, 128, 383, 384, 385, 392, 393, 480, 488, 500}) {
      const Case c{false, trans_b, 270, n, 260, 2};
      const std::vector<T> a = left<T>(c), b = right<T>(c), old = result<T>(c);
      const auto run = [&](int threads) {
        set_num_threads(threads);
        return product(c, a, b, old);
      };
      CAPTURE(trans_b);
      CAPTURE(n);
      const Settings restore;
      const std::vector<T> alone = run(1);
      CHECK(first_difference(run(2), alone) == -1);
      CHECK(first_difference(run(3), alone) == -1);
    }
  }
}

struct Size {
  int64_t m, n, k;
};

TEST_CASE_TEMPLATE(
    "kernels: a product with a packed right side has the bits of gemm, for all of it or its first rows and columns", T, float,
    double) {
  for_each_isa([&] {
    for (const bool trans_b : {false, true}) {
      for (const Size& all : {Size{1, 1, 1}, {1, 33, 40}, {1, 100, 300}, {1, 410, 64}, {1, 64, 520}}) {
        const Case whole = {.trans_a = false, .trans_b = trans_b, .m = 1, .n = all.n, .k = all.k, .extra = 3};
        const std::vector<T> b = right<T>(whole);
        std::vector<T> memory(static_cast<size_t>(packed_size<T>(all.n, all.k)));
        pack<T>(trans_b, all.n, all.k, b.data(), whole.ldb(), memory.data());
        for (const Size& part : {Size{1, all.n, all.k},
                                 {7, all.n, all.k},
                                 {32, all.n, all.k / 2},
                                 {32, (all.n + 1) / 2, all.k},
                                 {5, all.n - all.n / 3, all.k - all.k / 3}}) {
          const int64_t m = part.m, n = part.n, k = part.k;
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          const std::vector<T> a = matrix<T>(m, k, k + 3, 1);
          const auto size = static_cast<size_t>(m * n);
          std::vector<T> want(size), got(size);
          gemm(false, trans_b, m, n, k, a.data(), k + 3, b.data(), whole.ldb(), want.data(), n, false);
          gemm<T>(m, n, k, a.data(), k + 3, Packed<T>{memory.data(), all.n, all.k}, got.data(), n);
          CHECK(first_difference(got, want) == -1);
        }
      }
    }
  });
}

TEST_CASE_TEMPLATE("kernels: an epilogue gets every element once, when its sum is complete", T, float, double) {
  const auto changed = [](T y, int64_t row, int64_t col) { return 2 * y + static_cast<T>(row) - static_cast<T>(col) / 8; };
  const Epilogue epilogue = elementwise<T>(changed);
  for_each_isa([&] {
    for (const Size& s : {Size{1, 40, 300},
                          {3, 70, 40},
                          {20, 4100, 256},
                          {3, 4100, 600},
                          {40, 1, 30},
                          {1030, 90, 20},
                          {150, 420, 260},
                          {5, 7, 1},
                          {4, 5, 0}})
      for (const bool trans_a : {false, true})
        for (const bool trans_b : {false, true}) {
          const Case c{trans_a, trans_b, s.m, s.n, s.k, s.n == 1 ? 0 : 3, trans_a == trans_b};
          const std::vector<T> a = left<T>(c), b = right<T>(c), old = result<T>(c);
          std::vector<T> want = product(c, a, b, old);
          epilogue(want.data(), c.ldc(), 0, c.m, 0, c.n);
          for (const int threads : {1, 3}) {
            const Settings restore;
            set_num_threads(threads);
            std::vector<T> out = old;
            gemm(trans_a, trans_b, c.m, c.n, c.k, a.data(), c.lda(), b.data(), c.ldb(), out.data(), c.ldc(), c.accumulate,
                 epilogue);
            CAPTURE(s.m);
            CAPTURE(s.n);
            CAPTURE(s.k);
            CAPTURE(threads);
            CHECK(first_difference(out, want) == -1);
          }
        }
  });
}

TEST_CASE_TEMPLATE("kernels: a row of a product does not depend on the others", T, float, double) {
  for (const Case& all : {Case{false, true, 67, 150, 400}, Case{false, true, 1030, 400, 300}}) {  // more rows than stay packed
    const std::vector<T> a = left<T>(all), b = right<T>(all);
    const std::vector<T> c = product(all, a, b, std::vector<T>(static_cast<size_t>(all.m * all.n)));
    for (const int64_t i : {int64_t{0}, int64_t{30}, all.m - 1}) {
      const Case one{false, true, 1, all.n, all.k};
      const std::vector<T> row(a.begin() + i * all.k, a.begin() + (i + 1) * all.k);
      CHECK(first_difference(product(one, row, b, std::vector<T>(static_cast<size_t>(all.n))),
                             std::vector<T>(c.begin() + i * all.n, c.begin() + (i + 1) * all.n)) == -1);
    }
  }
}

TEST_CASE_TEMPLATE("kernels: a batch gives the bits of its products", T, float, double) {
  for (const bool accumulate : {false, true}) {
    for (const int64_t batch : {0, 1, 3, 40}) {
      const int64_t m = 17, n = 33, k = 20;
      const std::vector<T> a = matrix<T>(1, batch * m * k, 0, 1), b = matrix<T>(1, 2 * k * n, 0, 2),
                           old = matrix<T>(1, batch * m * n, 0, 3);
      std::vector<int64_t> a_at, b_at, c_at;
      for (int64_t i = 0; i < batch; ++i) {
        a_at.push_back((batch - 1 - i) * m * k);
        b_at.push_back(i % 2 * k * n);
        c_at.push_back(i * m * n);
      }
      const auto run = [&] {
        std::vector<T> c = old;
        gemm_batched(batch, false, true, m, n, k, a.data(), k, a_at.data(), b.data(), k, b_at.data(), c.data(), n, c_at.data(),
                     accumulate);
        return c;
      };
      std::vector<T> want = old;
      for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
        gemm(false, true, m, n, k, a.data() + a_at[i], k, b.data() + b_at[i], k, want.data() + c_at[i], n, accumulate);
      }
      CHECK(first_difference(run(), want) == -1);
      check_same_bits(run);
    }
  }
}

TEST_CASE("kernels: the double product agrees with the float one") {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool accumulate : {false, true}) {
        const Case c{trans_a, trans_b, 33, 21, 40, 2, accumulate};
        const Floats a = left<float>(c), b = right<float>(c), old = result<float>(c);
        Doubles wide = widened(old);
        gemm(c.trans_a, c.trans_b, c.m, c.n, c.k, widened(a).data(), c.lda(), widened(b).data(), c.ldb(), wide.data(), c.ldc(),
             accumulate);
        check_close(product(c, a, b, old), wide, 1e-6, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace onestep::kernels
