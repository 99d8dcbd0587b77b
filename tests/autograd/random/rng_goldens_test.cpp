// PyTorch's own draws (tests/goldens/rng.json), bit for bit: every value, and the next raw word after each case, which pins
// down how many words it took.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/random/generator.h"
#include "autograd/random/random_fill.h"
#include "tests/goldens.h"

namespace onestep {
namespace {

using nlohmann::json;

// The results of a case as the goldens list them: one text a value, and the bytes they are hashed by.
struct Draws {
  std::vector<std::string> texts;
  std::vector<std::byte> bytes;

  void add(std::span<const std::byte> raw, std::string text) {
    bytes.insert(bytes.end(), raw.begin(), raw.end());
    texts.push_back(std::move(text));
  }
  void add(float v) { add(std::as_bytes(std::span(&v, 1)), testing::hex(std::bit_cast<uint32_t>(v), 8)); }
  void add(double v) { add(std::as_bytes(std::span(&v, 1)), testing::hex(std::bit_cast<uint64_t>(v), 16)); }
  void add(int64_t v) { add(std::as_bytes(std::span(&v, 1)), std::to_string(v)); }
};

// A heap array; std::vector<bool> is not one.
template <class T>
struct Array {
  explicit Array(int64_t n) : data(std::make_unique<T[]>(static_cast<size_t>(n))), values(data.get(), static_cast<size_t>(n)) {}
  std::unique_ptr<T[]> data;
  std::span<T> values;
};

// Fills `n` values of T and adds them; what is not floating is listed as int64.
template <class T, class Fill>
void draw(Draws& draws, int64_t n, Fill fill) {
  const Array<T> out(n);
  fill(out.values);
  for (const T value : out.values) {
    if constexpr (std::is_floating_point_v<T>)
      draws.add(value);
    else
      draws.add(static_cast<int64_t>(value));
  }
}

// nn.Linear's parameters: the weight [out, in] within sqrt(3) gain / sqrt(in), gain = sqrt(2 / (1 + 5)), then the bias.
template <class T>
void draw_linear(Draws& draws, const json& args, Generator& g) {
  const int64_t in = args[0], out = args[1];
  const double bound = std::sqrt(3.0) * (std::sqrt(2.0 / (1.0 + std::sqrt(5.0) * std::sqrt(5.0))) / std::sqrt(in));
  draw<T>(draws, in * out, [&](std::span<T> weight) { fill_uniform(weight, -bound, bound, g); });
  const double bias_bound = 1.0 / std::sqrt(in);
  if (args[2] == 1) draw<T>(draws, out, [&](std::span<T> bias) { fill_uniform(bias, -bias_bound, bias_bound, g); });
}

template <class T>
void draw_dropout(Draws& draws, const json& args, Generator& g) {
  const Array<bool> keep(args[0]);
  fill_dropout_mask(keep.values, args[1], g);
  for (const bool kept : keep.values) draws.add(kept ? dropout_scale<T>(args[1]) : T(0));
}

void draw_multinomial(Draws& draws, const json& args, bool replacement, Generator& g) {
  std::vector<float> weights;
  for (int j = 0; j < args[1]; ++j) weights.push_back(static_cast<float>(1 + 7 * j % 11));
  draw<int64_t>(draws, args[0], [&](auto out) { multinomial<float>(weights, 1, args[0], replacement, out, g); });
}

using Op = std::function<void(Draws&, const json&, Generator&)>;

// The ops that exist for float32 (".f32") and float64 (".f64").
template <class T>
void add_floating_ops(std::map<std::string, Op>& ops, const std::string& suffix) {
  const auto add_fill = [&](const char* name, auto fill) {
    ops[name + suffix] = [fill](Draws& draws, const json& args, Generator& g) {
      draw<T>(draws, args[0], [&](std::span<T> out) { fill(out, args, g); });
    };
  };
  add_fill("uniform", [](auto out, const json& args, Generator& g) { fill_uniform(out, args[1], args[2], g); });
  add_fill("normal", [](auto out, const json& args, Generator& g) { fill_normal(out, args[1], args[2], g); });
  add_fill("exponential", [](auto out, const json& args, Generator& g) { fill_exponential(out, args[1], g); });
  add_fill("random", [](auto out, const json&, Generator& g) { fill_random(out, g); });
  ops["linear" + suffix] = draw_linear<T>;
  ops["dropout" + suffix] = draw_dropout<T>;
}

template <class T>
void add_random(std::map<std::string, Op>& ops, const std::string& name) {
  ops[name] = [](Draws& draws, const json& args, Generator& g) {
    draw<T>(draws, args[0], [&](std::span<T> out) { fill_random(out, g); });
  };
}

std::map<std::string, Op> make_ops() {
  std::map<std::string, Op> ops;
  add_floating_ops<float>(ops, ".f32");
  add_floating_ops<double>(ops, ".f64");
  add_random<int64_t>(ops, "random.i64");
  add_random<int32_t>(ops, "random.i32");
  add_random<uint8_t>(ops, "random.u8");
  add_random<bool>(ops, "random.bool");
  ops["raw64"] = [](Draws& draws, const json& args, Generator& g) {
    for (int64_t i = 0; i < args[0]; ++i) draws.add(static_cast<int64_t>(g.u64()));
  };
  ops["bernoulli"] = [](Draws& draws, const json& args, Generator& g) {
    draw<bool>(draws, args[0], [&](auto out) { fill_bernoulli(out, args[1], g); });
  };
  ops["bernoulli_tf32"] = [](Draws& draws, const json& args, Generator& g) {
    const std::vector<float> p(args[0], args[1].get<float>());
    draw<bool>(draws, args[0], [&](auto out) { fill_bernoulli<float>(out, p, g); });
  };
  ops["randint"] = [](Draws& draws, const json& args, Generator& g) {
    draw<int64_t>(draws, args[0], [&](auto out) { fill_randint(out, args[1], args[2], g); });
  };
  ops["randperm"] = [](Draws& draws, const json& args, Generator& g) {
    draw<int64_t>(draws, args[0], [&](auto out) { fill_randperm(out, g); });
  };
  ops["multinomial_r"] = [](Draws& draws, const json& args, Generator& g) { draw_multinomial(draws, args, true, g); };
  ops["multinomial_n"] = [](Draws& draws, const json& args, Generator& g) { draw_multinomial(draws, args, false, g); };
  return ops;
}

// Performs one op of a case. The name may begin with "base:" (PyTorch without AVX2) and its stem may end in "_mkl".
void perform(std::string name, const json& args, Draws& draws, Generator& g) {
  static const std::map<std::string, Op> ops = make_ops();
  const bool baseline = name.starts_with("base:");
  if (baseline) name.erase(0, 5);
  const size_t mkl = name.find("_mkl");
  if (mkl != std::string::npos) name.erase(mkl, 4);
  g.set_rounding(baseline ? RngRounding::separate : RngRounding::fused);
  g.set_dialect(mkl != std::string::npos ? RngDialect::torch_mkl : RngDialect::torch);
  REQUIRE_MESSAGE(ops.contains(name), "no such op: ", name);
  ops.at(name)(draws, args, g);
}

void check_case(const json& c) {
  Generator g(c["seed"]);
  Draws draws;
  for (const json& op : c["ops"]) perform(op[0], op[1], draws, g);
  REQUIRE(draws.texts.size() == c["n"]);
  if (c.contains("all")) {
    CHECK(draws.texts == c["all"].get<std::vector<std::string>>());
  } else {
    CHECK(std::vector(draws.texts.begin(), draws.texts.begin() + 8) == c["first"].get<std::vector<std::string>>());
    CHECK(std::vector(draws.texts.end() - 8, draws.texts.end()) == c["last"].get<std::vector<std::string>>());
    CHECK(testing::fnv1a(draws.bytes) == c["fnv"]);
  }
  CHECK(std::to_string(g.u64()) == c["next"]);
}

TEST_CASE("PyTorch's random streams: every case bit for bit") {
  const json& goldens = testing::golden("rng.json");
  std::map<int, std::vector<const json*>> by_group;
  for (const json& c : goldens["cases"]) by_group[c["group"]].push_back(&c);
  CHECK(goldens["cases"].size() == 658);
  CHECK(by_group.size() == goldens["meta"]["groups"].size());
  for (const auto& [group, cases] : by_group) {
    SUBCASE(goldens["meta"]["groups"][static_cast<size_t>(group)].get<std::string>().c_str()) {
      for (const json* c : cases) {
        const std::string what = (*c)["id"].get<std::string>() + " seed " + (*c)["seed"].dump() + ": " + (*c)["ops"].dump();
        CAPTURE(what);
        check_case(*c);
      }
    }
  }
}

TEST_CASE("PyTorch's random streams: the order of a shuffling DataLoader") {
  for (const json& c : testing::golden("rng.json")["extras"]["dataloader_shuffle"]["cases"]) {
    CAPTURE(c["seed"].dump());
    Generator g(c["seed"]);
    const int64_t items = c["items"], batch_size = c["batch_size"];
    for (const json& epoch : c["epochs"]) {
      int64_t seeds[2];  // a base seed for workers, then the sampler's
      fill_random<int64_t>(seeds, g);
      Generator sampler(seeds[1]);
      std::vector<int64_t> order(static_cast<size_t>(items));
      fill_randperm(order, sampler);
      std::vector<int64_t> expected;
      for (const json& batch : epoch) expected.insert(expected.end(), batch.begin(), batch.end());
      if (c["drop_last"]) order.resize(static_cast<size_t>(items / batch_size * batch_size));
      CHECK(order == expected);
    }
    CHECK(std::to_string(g.u64()) == c["next"]);
  }
}

}  // namespace
}  // namespace onestep
