#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "autograd/kernels/parallel.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

/// Numbers of which neighbours differ in every dtype.
Tensor numbered(const Shape& shape, DType dtype) { return to(reshape(remainder(arange(shape.numel()), 127), shape), dtype); }

}  // namespace

TEST_CASE("copies: a large tensor, which is written past the caches, has every element, wherever its rows begin and end") {
  struct Case {
    int64_t rows, cols, width;
  };
  // Rows that begin with a cache line; that do not; longer than the pieces that threads share; too short to be written so.
  for (const auto& [rows, cols, width] :
       {Case{2048, 2048, 1024}, Case{2048, 2048, 1023}, Case{3, 1'400'000, 700'001}, Case{70'000, 61, 31}}) {
    for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::uint8}) {
      const int64_t times = dtype == DType::uint8 ? 4 : dtype == DType::bfloat16 ? 2 : 1;
      const Tensor a = numbered({rows * times, width}, dtype), b = numbered({rows * times, cols - width}, dtype);
      const Tensor y = cat({a, b}, 1);
      REQUIRE(y.numel() * size_of(dtype) >= 16 << 20);
      CHECK(equal(narrow(y, 1, 0, width), a));
      CHECK(equal(narrow(y, 1, width, cols - width), b));
      CHECK(equal(clone(t(t(y))), y));
    }
  }
}

TEST_CASE("copies: large tensors may overlap in memory that is not the engine's") {
  constexpr int64_t n = 5 << 20;
  const auto memory = std::make_shared<std::vector<std::byte>>(4 * n + 64);
  const auto at = [&](int64_t byte) {
    return Tensor(std::make_shared<Storage>(memory->data() + byte, 4 * n, memory), DType::float32, {n}, {1}, 0);
  };
  const Tensor x = numbered({n}, DType::float32);
  const int threads = kernels::num_threads();
  kernels::set_num_threads(1);
  copy_(at(0), x);
  copy_(at(16), at(0));  // four floats on
  CHECK(equal(at(16), x));
  kernels::set_num_threads(threads);
}

TEST_CASE("copies: a transposed matrix in a part of another tensor has every element, and nothing beside it is written") {
  for (const int64_t rows : {3, 16, 35}) {
    const Tensor x = numbered({2, 33, rows}, DType::float32), y = zeros({2, rows, 40});
    copy_(narrow(y, 2, 5, 33), transpose(x, 1, 2));
    CHECK(equal(contiguous(transpose(narrow(y, 2, 5, 33), 1, 2)), x));
    CHECK(sum(y).item<double>() == sum(x).item<double>());
  }
}

TEST_CASE("copies: a transposed matrix has every element, whatever of a tile its sides leave") {
  for (const int64_t rows : {1, 3, 15, 16, 17, 35, 64}) {
    for (const int64_t cols : {1, 2, 16, 31, 33, 48}) {
      for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::uint8}) {
        const Tensor x = numbered({rows, cols}, dtype), y = contiguous(t(x));
        bool same = true;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c) same = same && y[c][r].item<double>() == x[r][c].item<double>();
        CHECK_MESSAGE(same, dtype, " ", rows, " x ", cols);
      }
    }
  }
}

}  // namespace onestep
