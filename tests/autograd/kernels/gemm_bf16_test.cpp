// Products of bfloat16: the sums that kernels.h promises, bit for bit, for every instruction set, with and without the dot
// products of AVX512-BF16, whatever the shape, layout and number of threads.
#include <array>
#include <thread>

#include "autograd/half.h"
#include "autograd/kernels/isa.h"
#include "autograd/kernels/table.h"
#include "base/error.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

/// Calls f() with every way that this machine has to compute such products.
template <class F>
void for_each_way(F f) {
  for_each_isa([&] {
    const Settings restore;
    for (const Bf16Instructions instructions : {Bf16Instructions::own, Bf16Instructions::fma}) {
      if (instructions == Bf16Instructions::own && !bf16_dot_supported()) continue;
      set_bf16_instructions(instructions);
      CAPTURE(bf16_dot_in_use());
      CAPTURE(amx_bf16_in_use());
      f();
    }
  });
}

/// Calls f() with both orders of sums.
template <class F>
void for_each_order(F f) {
  const Settings restore;
  for (const bool tiles : {false, true}) {
    set_bf16_in_tiles(tiles);
    CAPTURE(tiles);
    f();
  }
}

/// x rounded to 24 bits as if exponents had no end, and 0 if it is then below the smallest normal number: `exact` is a sum of
/// few terms, held by a double with all its bits where the result is small.
float flush(float rounded, double exact) {
  return std::fabs(exact) < 0x1p-126 - 0x1p-151 ? std::copysign(0.0f, rounded) : rounded;
}
float flush(float x) { return flush(x, x); }

/// a b + sum with one rounding.
float step(float a, float b, float sum) {
  a = flush(a);
  b = flush(b);
  return flush(std::fma(a, b, sum), double{a} * double{b} + double{sum});
}
float plus(float a, float b) { return flush(flush(a) + flush(b), double{flush(a)} + double{flush(b)}); }

using Halves = std::vector<uint16_t>;
/// The contract written down for c [m, n] = or += a [m, k] b [k, n].
Floats promised(int64_t m, int64_t n, int64_t k, const Floats& a, const Floats& b, Floats c, bool accumulate) {
  const auto at = [](const Floats& x, int64_t i) { return float_of_bfloat16(bfloat16_of_float(x[static_cast<size_t>(i)])); };
  const bool tiles = bf16_in_tiles();
  const int64_t together = tiles ? 32 : 256;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float& to = c[static_cast<size_t>(i * n + j)];
      for (int64_t p0 = 0; p0 < k; p0 += together) {
        const int64_t end = std::min(k, p0 + together);
        float evens = 0, odds = 0;  // one sum unless in tiles
        for (int64_t p = p0; p < end; p += 2) {
          const bool pair = p + 1 < end;  // else with a zero
          float& odd = tiles ? odds : evens;
          odd = step(pair ? at(a, i * k + p + 1) : 0, pair ? at(b, (p + 1) * n + j) : 0, odd);
          evens = step(at(a, i * k + p), at(b, p * n + j), evens);
        }
        const float before = p0 == 0 && !accumulate ? 0 : to;
        if (tiles)
          to = plus(before, plus(evens, odds));
        else
          to = p0 == 0 && !accumulate ? evens : plus(before, evens);
      }
    }
  }
  return c;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& x, int64_t rows, int64_t cols) {
  std::vector<T> y(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) y[static_cast<size_t>(c * rows + r)] = x[static_cast<size_t>(r * cols + c)];
  return y;
}

Halves rounded(const Floats& x) {
  Halves y;
  for (const float v : x) y.push_back(bfloat16_of_float(v));
  return y;
}

void check_layouts(int64_t m, int64_t n, int64_t k) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  const Floats a = random_floats(m * k, -1, 1, 1), b = random_floats(k * n, -1, 1, 2), old = random_floats(m * n, -1, 1, 3);
  const Floats at = transposed(a, m, k), bt = transposed(b, k, n);
  for (const bool accumulate : {false, true}) {
    const Floats want = promised(m, n, k, a, b, old, accumulate);
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        CAPTURE(trans_a);
        CAPTURE(trans_b);
        const Floats &left = trans_a ? at : a, &right = trans_b ? bt : b;
        const Halves left_halves = rounded(left), right_halves = rounded(right);
        Floats from_floats = old, from_halves = old;
        gemm(trans_a, trans_b, m, n, k, Bf16Source{left.data(), false}, trans_a ? m : k, Bf16Source{right.data(), false},
             trans_b ? k : n, from_floats.data(), n, accumulate);
        CHECK(first_difference(from_floats, want) == -1);
        gemm(trans_a, trans_b, m, n, k, Bf16Source{left_halves.data(), true}, trans_a ? m : k,
             Bf16Source{right_halves.data(), true}, trans_b ? k : n, from_halves.data(), n, accumulate);
        CHECK(first_difference(from_halves, want) == -1);
      }
    }
  }
}

TEST_CASE("products of bfloat16: every layout, shape and number of threads") {
  const Settings restore;
  set_min_work_per_thread(0);
  for_each_order([] {
    for_each_way([] {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                    {2, 3, 5},
                                    {5, 17, 2},
                                    {14, 32, 64},
                                    {15, 33, 255},
                                    {29, 50, 257},
                                    {3, 100, 512},
                                    {33, 7, 300},
                                    {1, 40, 30},
                                    {40, 1, 30},
                                    {65, 31, 33},
                                    {48, 64, 96},
                                    {37, 20, 2112},
                                    {17, 400, 9}}) {
        for (const int threads : {1, 3}) {
          set_num_threads(threads);
          check_layouts(m, n, k);
        }
      }
    });
  });
}

TEST_CASE("products of bfloat16: a packed right side, and parts of it") {
  for_each_order([] {
    for_each_way([] {
      const int64_t m = 20, n = 70, k = 301;
      const Floats a = random_floats(m * k, -1, 1, 1), b = random_floats(k * n, -1, 1, 2);
      Floats packed(static_cast<size_t>(packed_size<BFloat16>(n, k)));
      pack<BFloat16>(false, n, k, {b.data(), false}, n, packed.data());
      for (const int64_t depth : {k, int64_t{256}, int64_t{131}}) {
        for (const int64_t cols : {n, int64_t{33}, int64_t{16}}) {
          Floats want(static_cast<size_t>(m * cols)), got = want;
          gemm(false, false, m, cols, depth, Bf16Source{a.data(), false}, k, Bf16Source{b.data(), false}, n, want.data(), cols,
               false);
          gemm<BFloat16>(m, cols, depth, {a.data(), false}, k, Packed<BFloat16>{packed.data(), n, k}, got.data(), cols);
          CHECK(first_difference(got, want) == -1);
        }
      }
    });
  });
}

TEST_CASE("products of bfloat16: large ones are made of small ones, whose columns and rows are packed at once") {
  for_each_order([] {
    for_each_way([] {
      for (const auto& sizes : {std::array<int64_t, 3>{33, 2500, 320}, {48, 50, 2112}}) {
        const int64_t m = sizes[0], n = sizes[1], k = sizes[2];
        CAPTURE(k);
        const Halves a = rounded(random_floats(m * k, -1, 1, 1)), b = rounded(random_floats(k * n, -1, 1, 2)),
                     at = transposed(a, m, k);
        for (const bool trans_a : {false, true}) {
          const auto left = [&](int64_t row) { return Bf16Source{trans_a ? at.data() + row : a.data() + row * k, true}; };
          const int64_t lda = trans_a ? m : k;
          Floats got(static_cast<size_t>(m * n)), want = got;
          gemm(trans_a, false, m, n, k, left(0), lda, Bf16Source{b.data(), true}, n, got.data(), n, false);
          for (int64_t i = 0; i < m; i += 20)
            for (int64_t j = 0; j < n; j += 50)
              gemm(trans_a, false, std::min<int64_t>(20, m - i), 50, k, left(i), lda, Bf16Source{b.data() + j, true}, n,
                   want.data() + i * n + j, n, false);
          CHECK(first_difference(got, want) == -1);
          std::vector<BFloat16> narrow(got.size());
          gemm(trans_a, false, m, n, k, left(0), lda, Bf16Source{b.data(), true}, n, narrow.data(), {});
          CHECK(std::equal(narrow.begin(), narrow.end(), want.begin(),
                           [](BFloat16 x, float y) { return x.bits == bfloat16_of_float(y); }));
        }
      }
    });
  });
}

/// A row [1, k] and columns [k, n] of which column j sums to about sums[j] before the last two products, a[0] b[j] and a[1] b[n
/// + j]. A sum consists of three numbers of eight bits, times 1 or, where they would be subnormal, times 2^-64.
struct Steps {
  Floats row, columns;
};
Steps steps(const Halves& a, const Halves& b, const Floats& sums) {
  Steps s = {{1, 1, 1, 0, 0x1p-64f, 0x1p-64f, 0x1p-64f, 0}, {}};
  for (const uint16_t x : a) s.row.push_back(float_of_bfloat16(x));
  const size_t n = sums.size();
  s.columns.resize(8 * n);
  for (size_t j = 0; j < n; ++j) {
    const bool small = std::fabs(sums[j]) < 0x1p-40f;
    float left = small ? sums[j] * 0x1p64f : sums[j];
    for (size_t i = 0; i < 3; ++i) {
      const float part = std::isfinite(left) ? std::bit_cast<float>(std::bit_cast<uint32_t>(left) & 0xffff0000u) : left;
      s.columns[(i + (small ? 4 : 0)) * n + j] = part;
      left = std::isfinite(left) ? left - part : 0;
    }
  }
  for (const uint16_t x : b) s.columns.push_back(float_of_bfloat16(x));
  return s;
}

/// Checks them on every instruction set, and returns the result.
Floats check_steps_in_order(const Halves& a, const Halves& b, const Floats& sums) {
  const int64_t n = static_cast<int64_t>(sums.size());
  const Steps s = steps(a, b, sums);
  const Floats want = promised(1, n, 10, s.row, s.columns, sums, false);
  for_each_way([&] {
    Floats got = sums;
    gemm(false, false, 1, n, 10, Bf16Source{s.row.data(), false}, 10, Bf16Source{s.columns.data(), false}, n, got.data(), n,
         false);
    CHECK(first_difference(got, want) == -1);
  });
  return want;
}
void check_steps(const Halves& a, const Halves& b, const Floats& sums) {
  for_each_order([&] { check_steps_in_order(a, b, sums); });
}

TEST_CASE("products of bfloat16: every pair of exponents") {
  std::mt19937 engine(5);
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    Halves a(2), b(2 * 256 * 4);
    Floats sums(256 * 4);
    for (uint16_t& x : a) x = static_cast<uint16_t>((engine() & 0x807f) | exponent << 7);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint16_t>((engine() & 0x807f) | (i / 4 % 256) << 7);
    for (size_t i = 0; i < sums.size(); ++i) {  // about as large as the product, so that bits of both meet
      const auto other = static_cast<uint32_t>(i / 4 % 256), draw = static_cast<uint32_t>(engine());
      const uint32_t near = std::clamp(exponent + other + draw % 32, 143u, 397u) - 143;
      sums[i] = std::bit_cast<float>((static_cast<uint32_t>(engine()) & 0x807fffffu) | near << 23);
    }
    check_steps(a, b, sums);
  }
}

TEST_CASE("products of bfloat16: zeros, subnormal numbers, ties, infinities and NaN in every combination") {
  const Halves special = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x8080, 0x1a80, 0x9a80, 0x1a00, 0x3f80,
                          0xbf81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x3380, 0xb380, 0x3300};
  Halves even, odd;
  Floats sums;
  for (const uint16_t x : special) {
    for (const uint16_t y : special) {
      for (const uint32_t sum : {0x00000000u, 0x80000000u, 0x00800000u, 0x80800000u, 0x00800001u, 0x00ffffffu, 0x3f800000u,
                                 0x3f7fffffu, 0xbf800001u, 0x7f800000u, 0x7fc00000u, 0x00000001u}) {
        even.push_back(x);
        odd.push_back(y);
        sums.push_back(std::bit_cast<float>(sum));
      }
    }
  }
  Halves b = even;
  b.insert(b.end(), odd.begin(), odd.end());
  for (const uint16_t x : special)
    for (const uint16_t y : special) check_steps({x, y}, b, sums);
}

TEST_CASE("products of bfloat16: float32 numbers are rounded as halves are, whatever they are") {
  Floats a;
  for (uint32_t upper = 0; upper < 0x10000; upper += 5)  // ties and their neighbours, subnormals, what overflows, NaN
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      a.push_back(std::bit_cast<float>(upper << 16 | lower));
  for (uint32_t bits = 0x007f7ff0; bits < 0x00800010; ++bits) a.push_back(std::bit_cast<float>(bits));
  const auto n = static_cast<int64_t>(a.size());
  const Halves halves = rounded(a);
  const Floats one(2, 1.0f);
  const auto product = [&](bool transposed, Bf16Source from) {  // each number alone, as the even one of two and as the odd one
    Floats y(a.size());
    gemm(transposed, false, n, 1, 1, from, transposed ? n : 1, Bf16Source{one.data(), false}, 1, y.data(), 1, false);
    return y;
  };
  for_each_order([&] {
    for_each_way([&] {
      const Floats want = product(false, {halves.data(), true});
      for (const bool transposed : {false, true}) {
        CHECK(first_difference(product(transposed, {a.data(), false}), want) == -1);
        CHECK(first_difference(product(transposed, {halves.data(), true}), want) == -1);
      }
      Floats pairs(a.size() / 2), pairs_of_halves(pairs.size());
      gemm(false, false, n / 2, 1, 2, Bf16Source{a.data(), false}, 2, Bf16Source{one.data(), false}, 1, pairs.data(), 1, false);
      gemm(false, false, n / 2, 1, 2, Bf16Source{halves.data(), true}, 2, Bf16Source{one.data(), false}, 1,
           pairs_of_halves.data(), 1, false);
      CHECK(first_difference(pairs, pairs_of_halves) == -1);
    });
  });
}

TEST_CASE("products of bfloat16: what is rounded up to the smallest normal number is flushed where it was below it") {
  // 2^-126 - 2^-150 is 2^-126 rounded among subnormals, and subnormal with 24 bits of precision.
  const auto minus_square = [](float x) {
    return check_steps_in_order({bfloat16_of_float(x), 0}, {bfloat16_of_float(-x), 0}, {0x1p-126f});
  };
  CHECK(minus_square(0x1p-75f) == Floats{0});
  CHECK(minus_square(0x1p-76f) == Floats{0x1p-126f});
}

TEST_CASE("products of bfloat16: an epilogue computes with subnormal numbers, which the sums take for zeros") {
  const auto changed = [](float y, int64_t row, int64_t col) {
    return y * 0x1p-40f + 1e-40f * static_cast<float>(row * 3 + col);
  };
  const Epilogue epilogue = elementwise<float>(changed);
  for_each_order([&] {
    for_each_way([&] {
      for (const auto& [m, n, k] :
           {std::array<int64_t, 3>{5, 16, 8}, {40, 1, 8}, {1, 40, 30}, {150, 100, 300}, {270, 33, 5}, {4, 3, 0}})
        for (const int threads : {1, 3}) {
          const Settings restore;
          set_min_work_per_thread(0);
          set_num_threads(threads);
          const Floats a = random_floats(m * k, -0x1p-90f, 0x1p-90f, 1), b = random_floats(k * n, -1, 1, 2);
          Floats want(static_cast<size_t>(m * n)), got = want;
          const Bf16Source left{a.data(), false}, right{b.data(), false};
          gemm(false, false, m, n, k, left, k, right, n, want.data(), n, false);
          epilogue(want.data(), n, 0, m, 0, n);
          gemm(false, false, m, n, k, left, k, right, n, got.data(), n, false, epilogue);
          CHECK(first_difference(got, want) == -1);
          CHECK(want.back() != 0);
        }
    });
  });
}

TEST_CASE("products of bfloat16: rounded part by part, they are the sums rounded, and the epilogue comes before") {
  const Epilogue plus_position =
      elementwise<float>([](float y, int64_t row, int64_t col) { return y + 0.125f * static_cast<float>(row - col); });
  for_each_order([&] {
    for_each_way([&] {
      for (const auto& sizes : {std::array<int64_t, 3>{3, 5, 7}, {33, 9001, 40}, {1700, 180, 33}, {600, 600, 5}, {1, 40, 3}})
        for (const int threads : {1, 3}) {
          const int64_t m = sizes[0], n = sizes[1], k = sizes[2];
          const Settings restore;
          set_min_work_per_thread(0);
          set_num_threads(threads);
          CAPTURE(m);
          CAPTURE(n);
          const Floats a = random_floats(m * k, -1, 1, 1), b = random_floats(k * n, -1, 1, 2);
          const Bf16Source left{a.data(), false}, right{b.data(), false};
          Floats sums(static_cast<size_t>(m * n));
          gemm(false, false, m, n, k, left, k, right, n, sums.data(), n, false, plus_position);
          std::vector<BFloat16> got(sums.size());
          gemm(false, false, m, n, k, left, k, right, n, got.data(), plus_position);
          CHECK(std::equal(got.begin(), got.end(), sums.begin(),
                           [](BFloat16 x, float y) { return x.bits == bfloat16_of_float(y); }));
        }
    });
  });
}

TEST_CASE("products of bfloat16: threads compute in the order of the one that they help, which is not that of others") {
  const Settings restore;
  set_min_work_per_thread(0);
  set_num_threads(3);
  const int64_t m = 150, n = 70, k = 300;
  const Floats a = random_floats(m * k, -1, 1, 1), b = random_floats(k * n, -1, 1, 2);
  const auto product = [&] {
    Floats y(static_cast<size_t>(m * n));
    gemm(false, false, m, n, k, Bf16Source{a.data(), false}, k, Bf16Source{b.data(), false}, n, y.data(), n, false);
    return y;
  };
  const Floats pairs = product();
  set_bf16_in_tiles(true);
  const Floats tiles = product();
  CHECK(first_difference(tiles, promised(m, n, k, a, b, tiles, false)) == -1);
  std::thread other([&] { CHECK(first_difference(product(), pairs) == -1); });
  other.join();
  CHECK(first_difference(product(), tiles) == -1);
}

TEST_CASE("products of bfloat16: in tiles, 32 numbers along k are summed before they are added") {
  const Settings restore;
  Floats ones(33, 1.0f), b(33, 0.0f);
  b[0] = 0x1p24f, b[1] = 1, b[2] = -0x1p24f, b[32] = 1;
  const auto sum = [&] {
    float y = 0;
    gemm(false, false, 1, 1, 33, Bf16Source{ones.data(), false}, 33, Bf16Source{b.data(), false}, 1, &y, 1, false);
    return y;
  };
  CHECK(sum() == 1);  // ((1 + 2^24) - 2^24) + 1
  set_bf16_in_tiles(true);
  CHECK(sum() == 2);  // ((2^24 - 2^24) + 1) + 1
}

TEST_CASE("products of bfloat16: what they are made of is asked for by name") {
  const Settings restore;
  if (!bf16_dot_supported()) {
    CHECK_THROWS_AS(set_bf16_instructions(Bf16Instructions::own), ConfigError);
    return;
  }
  set_bf16_instructions(Bf16Instructions::own);
  if (isa_supported(Isa::avx512)) {
    set_isa(Isa::avx512);
    CHECK(bf16_dot_in_use());
    CHECK(amx_bf16_in_use() == may_multiply_bf16_tiles());  // or the CPU's tiles failed the trial
  }
  set_isa(Isa::generic);
  CHECK_FALSE(bf16_dot_in_use());
  CHECK_FALSE(amx_bf16_in_use());
}

}  // namespace
}  // namespace onestep::kernels
