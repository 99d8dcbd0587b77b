// pack_weights: layers with weights in fewer bytes.
#include "nn/pack_weights.h"

#include "autograd/memory.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "tests/nn/check.h"

using namespace onestep;
using onestep::testing::refusal;

namespace {

/// Two embeddings and two Linear layers, of which the last shares the weight of the first embedding.
struct Model : nn::Module {
  explicit Model(Generator& generator)
      : tokens(50, 32, generator), positions(8, 32, generator), up(32, 32, true, generator), head(32, 50, false, generator) {
    tokens.weight = head.weight;
  }
  std::string name() const override { return "Model"; }
  void visit(nn::Visitor& visitor) override {
    visitor.child("tokens", tokens);
    visitor.child("positions", positions);
    visitor.child("up", up);
    visitor.child("head", head);
  }
  Tensor forward(const Tensor& ids) const { return head(up(tokens(ids) + positions(arange(ids.size(0))))); }

  nn::Embedding tokens, positions;
  nn::Linear up, head;
};

}  // namespace

TEST_CASE("pack_weights: the model computes with what its packed weights stand for") {
  const Tensor ids = arange(8);
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8}) {
    Generator a(1), b(1);
    Model packed(a), plain(b);
    nn::pack_weights(packed, format);
    REQUIRE(packed.up.packed);
    REQUIRE(packed.head.packed);
    CHECK(packed.tokens.packed == packed.head.packed);
    CHECK(!packed.positions.packed);
    CHECK(packed.up.packed->format() == format);
    const NoGradGuard no_grad;
    const Tensor embedded = packed.head.packed->embedding(ids) + packed.positions(arange(8));
    const Tensor want = packed.head.packed->linear(packed.up.packed->linear(embedded, packed.up.bias));
    const std::vector<float> got = packed.forward(ids).to_vector<float>();
    CHECK(got == want.to_vector<float>());
    copy_(plain.up.weight, packed.up.packed->unpacked());
    copy_(plain.head.weight, packed.head.packed->unpacked());
    const std::vector<float> unpacked = plain.forward(ids).to_vector<float>();
    if (format == WeightFormat::bf16) CHECK(got == unpacked);
  }
}

TEST_CASE("pack_weights: float32 weights are released and no longer parameters") {
  Generator generator(1);
  Model model(generator);
  const int64_t before = nn::weight_bytes(model), live = memory::stats().live_bytes;
  CHECK(before == 4 * (50 * 32 + 8 * 32 + 32 * 32 + 32));
  const std::string repr = model.repr();
  nn::pack_weights(model, WeightFormat::float32);
  CHECK(model.num_parameters() == before / 4);
  nn::pack_weights(model, WeightFormat::int8);
  CHECK(model.repr() == repr);
  CHECK(model.num_parameters() == 8 * 32 + 32);
  const int64_t packed = 64 * (32 + 4) + 32 * (32 + 4);  // whole panels of 16 rows, a scale for each row
  CHECK(nn::weight_bytes(model) == 4 * (8 * 32 + 32) + packed);
  CHECK(memory::stats().live_bytes < live - 4 * (50 * 32 + 32 * 32) + 2 * packed);
  nn::pack_weights(model, WeightFormat::bf16);  // once is enough
  CHECK(model.up.packed->format() == WeightFormat::int8);
}

TEST_CASE("pack_weights: a packed model is not trained, and float64 weights are not packed") {
  Generator generator(1);
  Model model(generator);
  nn::pack_weights(model, WeightFormat::bf16);
  CHECK(refusal<GradError>([&] { model.forward(arange(8)); }).starts_with("linear: a packed weight "));
  nn::Linear wide(2, 3, true, generator);
  wide.to(DType::float64);
  CHECK(refusal<DTypeError>([&] { nn::pack_weights(wide, WeightFormat::bf16); }) ==
        "PackedWeight: weight must be float32: got float64");
  CHECK(wide.weight.defined());
}
