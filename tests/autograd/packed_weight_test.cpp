// Weights in fewer bytes: what is kept of them, and the order of sums that is promised, bit for bit, whatever the shape, the
// instruction set and the number of threads.
#include "autograd/packed_weight.h"

#include <cstring>
#include <numeric>

#include "autograd/kernels/table.h"
#include "autograd/ops.h"
#include "base/enum_names.h"
#include "tests/autograd/kernels/kernel_testing.h"

using namespace onestep;
using namespace onestep::kernels::testing;

namespace {

Tensor tensor(const Floats& values, const Shape& shape) { return from_values(std::span(values), shape); }

struct Sizes {
  int64_t m, n, k;
};

/// Few rows and many, panels that are full and not, k around groups and k-blocks.
std::vector<Sizes> all_sizes() {
  std::vector<Sizes> sizes;
  for (const int64_t m : {1, 2, 3, 4, 5, 8, 11})
    for (const int64_t n : {1, 15, 16, 17, 70})
      for (const int64_t k : {1, 2, 63, 64, 65, 130}) sizes.push_back({m, n, k});
  for (const int64_t m : {1, 4, 6}) sizes.insert(sizes.end(), {{m, 200, 256}, {m, 33, 257}, {m, 130, 600}});
  return sizes;
}

/// A weight whose rows are of different sizes.
Floats weight(const Sizes& s) {
  Floats w = random_floats(s.n * s.k, -1, 1, 2);
  for (int64_t i = 0; i < s.n * s.k; ++i) w[static_cast<size_t>(i)] *= static_cast<float>(1 + i / s.k);
  return w;
}

/// A row's groups of 64 as the header says: integers and a scale. Of a weight ties are rounded away from 0, of x to even.
struct Group {
  float scale = 0;
  std::vector<int> q;
};
std::vector<Group> quantized(const float* row, int64_t k, float (*round)(float)) {
  std::vector<Group> groups;
  for (int64_t p0 = 0; p0 < k; p0 += 64) {
    Group group;
    const int64_t end = std::min(k, p0 + 64);
    for (int64_t p = p0; p < end; ++p) group.scale = std::max(group.scale, std::fabs(row[p]) / 127);
    for (int64_t p = p0; p < end; ++p) group.q.push_back(static_cast<int>(round(row[p] / group.scale)));
    groups.push_back(group);
  }
  return groups;
}
std::vector<Group> quantized_weight(const float* w, int64_t k) { return quantized(w, k, std::round); }
std::vector<Group> quantized_input(const float* x, int64_t k) { return quantized(x, k, std::nearbyint); }

/// y = w's scale (x's scale sum) + y a group, rounded after each bracket: [m, n]
Floats promised_int8(const Sizes& s, const Floats& x, const Floats& w) {
  Floats y;
  for (int64_t i = 0; i < s.m; ++i) {
    const std::vector<Group> input = quantized_input(x.data() + i * s.k, s.k);
    for (int64_t j = 0; j < s.n; ++j) {
      const std::vector<Group> weight = quantized_weight(w.data() + j * s.k, s.k);
      float total = 0;
      for (size_t g = 0; g < input.size(); ++g) {
        const int sum = std::inner_product(input[g].q.begin(), input[g].q.end(), weight[g].q.begin(), 0);
        total = std::fma(weight[g].scale, input[g].scale * static_cast<float>(sum), total);
      }
      y.push_back(total);
    }
  }
  return y;
}

TEST_CASE("packed weight: bf16 gives the bits of a product with the rounded weight") {
  for_each_isa([] {
    for (const Sizes& s : all_sizes()) {
      CAPTURE(s.m);
      CAPTURE(s.n);
      CAPTURE(s.k);
      const Tensor x = tensor(random_floats(s.m * s.k, -1, 1, 1), {s.m, s.k}), w = tensor(weight(s), {s.n, s.k});
      const Tensor b = tensor(random_floats(s.n, -1, 1, 3), {s.n}), rounded = w.to(DType::bfloat16).to(DType::float32);
      const PackedWeight packed(w, WeightFormat::bf16);
      CHECK(first_difference(packed.unpacked().to_vector<float>(), rounded.to_vector<float>()) == -1);
      CHECK(first_difference(packed.linear(x).to_vector<float>(), linear(x, rounded).to_vector<float>()) == -1);
      CHECK(first_difference(packed.linear(x, b).to_vector<float>(), linear(x, rounded, b).to_vector<float>()) == -1);
    }
  });
}

TEST_CASE("packed weight: int8 sums in groups of 64 as promised") {
  for_each_isa([] {
    for (const Sizes& s : all_sizes()) {
      CAPTURE(s.m);
      CAPTURE(s.n);
      CAPTURE(s.k);
      const Floats x = random_floats(s.m * s.k, -1, 1, 1), w = weight(s);
      const PackedWeight packed(tensor(w, {s.n, s.k}), WeightFormat::int8);
      CHECK(first_difference(packed.linear(tensor(x, {s.m, s.k})).to_vector<float>(), promised_int8(s, x, w)) == -1);
    }
  });
}

TEST_CASE("packed weight: int8 rounds every input by at most half of its group's scale") {
  const Sizes s{6, 90, 200};
  const Floats x = random_floats(s.m * s.k, -2, 2, 1);
  const PackedWeight packed(tensor(weight(s), {s.n, s.k}), WeightFormat::int8);
  const Floats w = packed.unpacked().to_vector<float>(), y = packed.linear(tensor(x, {s.m, s.k})).to_vector<float>();
  for (int64_t i = 0; i < s.m; ++i) {
    const std::vector<Group> input = quantized_input(x.data() + i * s.k, s.k);
    for (int64_t j = 0; j < s.n; ++j) {
      double product = 0, bound = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        const double weight = w[static_cast<size_t>(j * s.k + p)];
        product += static_cast<double>(x[static_cast<size_t>(i * s.k + p)]) * weight;
        bound += 0.5001 * static_cast<double>(input[static_cast<size_t>(p / 64)].scale) * std::fabs(weight);
      }
      CHECK(std::fabs(y[static_cast<size_t>(i * s.n + j)] - product) <= bound);
    }
  }
}

#ifdef __x86_64__
TEST_CASE("packed weight: AVX-512 and AVX2 give the same bits with and without the CPU's dot products of bytes") {
  using namespace onestep::kernels;
  constexpr int64_t n = 170, k = 150, groups = 3, panel_bytes = 38 * 64 + groups * 64, count = 11;
  std::mt19937 engine(1);
  std::vector<unsigned char> panels(count * panel_bytes);
  for (unsigned char& byte : panels) byte = static_cast<unsigned char>(engine());
  for (size_t at = 0; at < panels.size(); at += 4)
    if (const size_t in_panel = at % panel_bytes; in_panel % (17 * 64) < 64) {  // the scales of a group
      const float scale = 0.001f * static_cast<float>(engine() % 1000);
      std::memcpy(&panels[at], &scale, sizeof scale);
    }
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 40}) {
    const Floats x = random_floats(m * k, -3, 3, 7);
    const auto product = [&](const WeightProducts& products) {
      std::vector<unsigned char> integers(static_cast<size_t>(m * groups * products.group_bytes));
      for (int64_t i = 0; i < m; ++i)
        products.quantize(&x[static_cast<size_t>(i * k)], k, &integers[static_cast<size_t>(i * groups * products.group_bytes)]);
      Floats y(static_cast<size_t>(m * n));
      products.int8({.x = integers.data(), .panels = panels.data(), .bias = nullptr, .y = y.data(), .m = m, .n = n, .k = k}, 0,
                    count);
      return y;
    };
    const Floats want = product(generic::weight_products());
    for (const Isa isa : {Isa::avx512, Isa::avx2})
      if (isa_supported(isa))
        for (const WeightProducts& products : usable_weight_products(isa))
          CHECK(first_difference(product(products), want) == -1);
  }
}
#endif

TEST_CASE("packed weight: products have the same bits for every instruction set and number of threads") {
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8}) {
    for (const Sizes& s : {Sizes{1, 700, 300}, {3, 90, 65}, {9, 210, 520}}) {
      const Tensor x = tensor(random_floats(s.m * s.k, -1, 1, 1), {s.m, s.k}), w = tensor(weight(s), {s.n, s.k});
      check_same_bits([&] { return PackedWeight(w, format).linear(x).to_vector<float>(); });
    }
  }
}

TEST_CASE("packed weight: a row of a product does not depend on the others, nor on its strides") {
  const Sizes s{13, 40, 140};
  const Tensor x = tensor(random_floats(s.m * s.k, -1, 1, 1), {s.m, s.k});
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8}) {
    const PackedWeight packed(tensor(weight(s), {s.n, s.k}), format);
    const Tensor y = packed.linear(x);
    for (const int64_t i : {0, 5, 12})
      CHECK(first_difference(packed.linear(x[i]).to_vector<float>(), y[i].to_vector<float>()) == -1);
    CHECK(packed.linear(x[0]).shape() == Shape{40});
    const Tensor strided = contiguous(x.t()).t();
    CHECK(first_difference(packed.linear(strided).to_vector<float>(), y.to_vector<float>()) == -1);
    const Tensor every_other = tensor(random_floats(2 * s.n, -1, 1, 3), {s.n, 2}).select(1, 0);
    CHECK(first_difference(packed.linear(x, every_other).to_vector<float>(), (y + every_other).to_vector<float>()) == -1);
    const Tensor batch = packed.linear(reshape(narrow(x, 0, 0, 12), {3, 4, s.k}));
    CHECK(batch.shape() == Shape{3, 4, 40});
    CHECK(first_difference(batch.to_vector<float>(), narrow(y, 0, 0, 12).to_vector<float>()) == -1);
    CHECK(packed.linear(zeros({0, s.k})).shape() == Shape{0, 40});
    const PackedWeight none(zeros({3, 0}), format);
    CHECK(none.linear(zeros({2, 0}), ones({3})).to_vector<float>() == Floats(6, 1));
  }
}

TEST_CASE("packed weight: int8 keeps every number to half a step, in a quarter of the bytes") {
  const Sizes s{1, 50, 200};
  const Floats w = weight(s);
  const PackedWeight packed(tensor(w, {s.n, s.k}), WeightFormat::int8);
  const Floats kept = packed.unpacked().to_vector<float>();
  for (int64_t j = 0; j < s.n; ++j) {
    const std::vector<Group> groups = quantized_weight(w.data() + j * s.k, s.k);
    for (int64_t p = 0; p < s.k; ++p) {
      const Group& group = groups[static_cast<size_t>(p / 64)];
      const size_t i = static_cast<size_t>(j * s.k + p);
      CHECK(kept[i] == group.scale * static_cast<float>(group.q[static_cast<size_t>(p % 64)]));
      CHECK(std::fabs(kept[i] - w[i]) <= 0.5001f * group.scale);
    }
  }
  CHECK(packed.bytes() == 4 * 16 * (200 + 4 * 4));  // four panels; four groups a row
  CHECK(PackedWeight(tensor(w, {s.n, s.k}), WeightFormat::bf16).bytes() == 4 * 16 * 200 * 2);
}

TEST_CASE("packed weight: an embedding gives rows of the unpacked weight") {
  const Tensor w = tensor(weight({1, 37, 70}), {37, 70}), index = from_values(std::vector<int64_t>{36, 0, 17, 36}, {2, 2});
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8}) {
    const PackedWeight packed(w, format);
    const Tensor rows = packed.embedding(index);
    CHECK(rows.shape() == Shape{2, 2, 70});
    CHECK(rows.to_vector<float>() == embedding(index, packed.unpacked()).to_vector<float>());
    CHECK_THROWS_AS(packed.embedding(from_values(std::vector<int64_t>{37}, {1})), IndexError);
  }
}

TEST_CASE("packed weight: zeros, the smallest numbers and those that are not finite") {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min(), kLargest = std::numeric_limits<float>::max();
  const auto kept = [](WeightFormat format, const Floats& row) {
    return PackedWeight(tensor(row, {1, static_cast<int64_t>(row.size())}), format).unpacked().to_vector<float>();
  };
  CHECK(kept(WeightFormat::int8, {0, -0.0f, 0}) == Floats{0, 0, 0});
  CHECK(kept(WeightFormat::int8, {kTiny, 0}) == Floats{0, 0});
  CHECK(kept(WeightFormat::int8, {190 * kTiny, -kTiny}) == Floats{127 * kTiny, -kTiny});  // its scale is kTiny
  CHECK(kept(WeightFormat::int8, {kLargest, -kLargest, 0}) == Floats{kLargest / 127 * 127, -(kLargest / 127 * 127), 0});
  for (const float bad : {kernels::testing::kInfinity, -kernels::testing::kInfinity, kernels::testing::kNaN}) {
    const Tensor w = tensor({1, bad, 2}, {1, 3});
    const Tensor y = PackedWeight(w, WeightFormat::int8).linear(ones({1, 3}));
    CHECK(std::isnan(y.item()));
    CHECK(!std::isfinite(PackedWeight(w, WeightFormat::bf16).linear(ones({1, 3})).item()));
    const Tensor finite = ones({2, 3}), y_of_bad = PackedWeight(finite, WeightFormat::int8).linear(w);
    CHECK(std::isnan(y_of_bad.to_vector<float>()[1]));
  }
  const auto product = [](const Floats& x) {
    return PackedWeight(ones({1, 2}), WeightFormat::int8).linear(tensor(x, {2})).item();
  };
  CHECK(product({0, -0.0f}) == 0);
  CHECK(product({kTiny, 0}) == 0);  // its scale would be smaller still
  CHECK(product({kLargest, 0}) == kLargest / 127 * 127);
}

TEST_CASE("packed weight: what does not fit is refused") {
  CHECK_THROWS_AS(PackedWeight(ones({3}), WeightFormat::int8), ShapeError);
  CHECK_THROWS_AS(PackedWeight(ones({3, 2}, DType::float64), WeightFormat::int8), DTypeError);
  CHECK_THROWS_AS(PackedWeight(ones({3, 2}), WeightFormat::float32), ConfigError);
  const PackedWeight packed(ones({3, 2}), WeightFormat::int8);
  CHECK_THROWS_WITH_AS(packed.linear(ones({4, 3})), doctest::Contains("linear: input [4, 3] does not fit weight [3, 2] "),
                       ShapeError);
  CHECK_THROWS_AS(packed.linear(ones({2}, DType::float64)), DTypeError);
  CHECK_THROWS_WITH_AS(packed.linear(ones({2}), ones({1})), "linear: bias [1] does not fit weight [3, 2] (needs [3])",
                       ShapeError);
  CHECK_THROWS_AS(packed.linear(ones({2}), ones({3}, DType::float64)), DTypeError);
  CHECK_THROWS_WITH_AS(packed.linear(ones({2}).requires_grad_()),
                       "linear: a packed weight is for inference: nothing is recorded (use NoGradGuard)", GradError);
  CHECK_THROWS_AS(packed.linear(ones({2}), ones({3}).requires_grad_()), GradError);
  const NoGradGuard no_grad;
  CHECK(packed.linear(ones({2}).requires_grad_()).to_vector<float>() == Floats{2, 2, 2});
}

TEST_CASE("packed weight: formats have names") {
  CHECK(name_of(WeightFormat::int8) == "int8");
  CHECK(value_named<WeightFormat>("bf16") == WeightFormat::bf16);
  CHECK(!value_named<WeightFormat>("int4"));
}

}  // namespace
