// The room on attention: its numbers are the book's and the modules', and a formula is what made a number.

#include "web/engine/attention_steps.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "attention/multi_head_attention.h"
#include "autograd/ops.h"
#include "learn/book/sections.h"
#include "tests/support.h"
#include "web/engine/tensor_json.h"

using namespace onestep;
using nlohmann::json;
using onestep::testing::refusal;
using onestep::web::attention_choice;
using onestep::web::attention_steps;
using onestep::web::AttentionStep;

namespace {

Tensor value_of(const std::vector<AttentionStep>& steps, const std::string& name) {
  for (const AttentionStep& step : steps)
    if (step.name == name) return step.value;
  FAIL("there is no step " << name);
  return {};
}

json step_of(const json& room, const std::string& name) {
  for (const json& step : room.at("steps"))
    if (step.at("name") == name) return step;
  return nullptr;
}

}  // namespace

TEST_CASE("web: attention gives every digit that the book prints of its sections") {
  int numbers = 0;
  for (const json& section : web::attention_sections(json::object())) {
    for (const char* dialect : {"torch", "torch-mkl"}) {
      json choice = section.at("choice");
      choice["dialect"] = choice.at("dropout") > 0 ? dialect : "torch";
      const json room = web::attention(choice);
      CAPTURE(section.at("section").dump());
      CHECK(room.at("section") == section.at("section"));
      for (const json& step : room.at("steps")) {
        if (step.at("printed").is_null()) continue;
        CHECK_MESSAGE(step.at("printed").at("agrees") == true, step.at("printed").at("difference").dump());
        numbers += step.at("printed").at("numbers").get<int>();
      }
    }
  }
  CHECK(numbers == 2 * (108 + 68 + 66 + 90 + 90 + 30 + 42 + 30));
}

TEST_CASE("web: a number that the book does not print is not compared") {
  const json room = web::attention({{"seed", 124}});
  CHECK(room.at("section").is_null());
  CHECK(step_of(room, "keys").at("printed").is_null());
  CHECK(web::attention({{"edits", {{"keys", {{0, 0, 0.5}}}}}}).at("section").is_null());
}

TEST_CASE("web: attention step by step is the module") {
  Generator generator(123);
  const attention::MultiHeadAttention mha(3, 4, 6, 0.0, 2, false, generator);
  const auto [context, weights] = mha.forward_with_weights(book::journey());
  const std::vector<AttentionStep> steps = attention_steps(
      attention_choice({{"weights", "linear"}, {"width", 4}, {"heads", 2}, {"masked", true}, {"output", true}}));
  CHECK(value_of(steps, "weights").to_vector<float>() == weights.to_vector<float>());
  const std::vector<float> ours = value_of(steps, "output").to_vector<float>(), theirs = context.to_vector<float>();
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == doctest::Approx(theirs[i]).epsilon(1e-6));
}

TEST_CASE("web: switches add and remove steps") {
  const auto names = [](const json& choice) {
    std::string all;
    for (const AttentionStep& step : attention_steps(attention_choice(choice))) all.append(step.name) += " ";
    return all;
  };
  CHECK(names({{"weights", "none"}, {"scaled", false}}) == "x scores weights context ");
  CHECK(names({{"masked", true}, {"dropout", 0.5}}) ==
        "x W_query W_key W_value queries keys values scores masked scaled weights dropped context ");
  CHECK(
      names({{"heads", 2}, {"output", true}, {"scaled", false}}) ==
      "x W_query W_key W_value W_out b_out queries keys values query_heads key_heads value_heads scores weights context merged "
      "output ");
}

TEST_CASE("web: a number set by hand changes what is computed from it and nothing else") {
  const json plain = web::attention(json::object());
  const json edited = web::attention({{"edits", {{"queries", {{1, 0, 2.5}}}}}});
  CHECK(step_of(edited, "queries").at("values")[0][1][0] == 2.5);
  CHECK(step_of(edited, "queries").at("edited") == json::array({{1, 0}}));
  CHECK(step_of(edited, "keys") == [&] {
    json keys = step_of(plain, "keys");
    keys["printed"] = nullptr;
    return keys;
  }());
  CHECK(step_of(edited, "scores").at("values")[0][0] == step_of(plain, "scores").at("values")[0][0]);
  CHECK(step_of(edited, "scores").at("values")[0][1] != step_of(plain, "scores").at("values")[0][1]);
}

TEST_CASE("web: own words have vectors of their own, known ones the book's") {
  const Tensor x = value_of(attention_steps(attention_choice({{"sentence", "JOURNEY to journey zu"}})), "x");
  CHECK(x[0].to_vector<float>() == book::journey()[1].to_vector<float>());
  CHECK(x[2].to_vector<float>() == book::journey()[1].to_vector<float>());
  CHECK(x[1].to_vector<float>() != x[3].to_vector<float>());
  for (const double v : x.to_vector<double>()) CHECK((v >= 0 && v <= 1));
}

TEST_CASE("web: a number is explained by what it is computed from") {
  const auto cell = [](json choice, const char* step, int head, int row, int column) {
    choice.update({{"step", step}, {"head", head}, {"row", row}, {"column", column}});
    return web::attention_cell(choice);
  };
  const json score = cell(json::object(), "scores", 0, 1, 1);
  CHECK(score.at("formula") == "query of journey · key of journey");
  CHECK(score.at("numbers") == "0.4306 × 0.4433 + 1.4551 × 1.1419");
  CHECK(web::four_decimals(score.at("value")) == "1.8524");
  CHECK(score.at("sources")[0] == json({{"step", "queries"}, {"head", 0}, {"row", 1}, {"column", nullptr}}));
  const json masked = cell({{"masked", true}}, "masked", 0, 0, 5);
  CHECK(masked.at("value") == "-inf");
  CHECK(masked.at("formula") == "−∞, since step comes after Your");
  const json weight = cell({{"masked", true}}, "weights", 0, 0, 0);
  CHECK(weight.at("value") == 1);
  CHECK(weight.at("numbers") == "exp(0.6528) / (exp(0.6528))");
  const json context = cell({{"heads", 2}, {"width", 4}, {"masked", true}}, "context", 1, 0, 1);
  CHECK(context.at("sources")[1].at("step") == "value_heads");
  const json merged = cell({{"heads", 2}, {"width", 4}, {"masked", true}}, "merged", 0, 0, 3);
  CHECK(merged.at("value") == context.at("value"));
}

TEST_CASE("web: every number of every section can be explained") {
  for (const json& section : web::attention_sections(json::object())) {
    const json room = web::attention(section.at("choice"));
    for (const json& step : room.at("steps")) {
      json place = section.at("choice");
      place.update({{"step", step.at("name")}, {"row", 0}, {"column", 0}});
      const json cell = web::attention_cell(place);
      CHECK(cell.at("value") == step.at("values")[0][0][0]);
      CHECK(!cell.at("formula").get<std::string>().empty());
    }
  }
}

TEST_CASE("web: a choice that does not fit is refused") {
  const auto says = [](const json& choice) { return refusal([&] { web::attention(choice); }); };
  CHECK(says({{"heads", 9}}) == "arguments: /heads: must be from 1 to 4: got 9");
  CHECK(says({{"masked", 1}}).starts_with("arguments: /masked: "));
  CHECK(says({{"dropout", 1.5}}).starts_with("arguments: /dropout: "));
  CHECK(says({{"weights", "wild"}}).starts_with("arguments: /weights: "));
  CHECK(says({{"sentence", "  "}}).starts_with("arguments: /sentence: "));
  CHECK(says({{"sentence", std::string(301, 'a')}}).starts_with("arguments: /sentence: "));
  CHECK(says({{"sentence", 5}}).starts_with("arguments: /sentence: "));
  CHECK(says({{"colour", 1}}) == "arguments: /colour: there is no such argument");
  CHECK(says({{"weights", "none"}, {"heads", 2}}).starts_with("arguments: /weights: "));
  CHECK(says({{"edits", {{"scores", {{0, 0, 1}}}}}}).starts_with("arguments: /edits/scores: "));
  CHECK(says({{"edits", {{"keys", {{0, 0}}}}}}).starts_with("arguments: /edits/keys: "));
  CHECK(says({{"edits", json::array()}}).starts_with("arguments: /edits: "));
  CHECK_THROWS_AS(web::attention({{"width", 3}, {"heads", 2}}), ShapeError);
  CHECK_THROWS_AS(web::attention({{"edits", {{"keys", {{9, 0, 1}}}}}}), IndexError);
  CHECK(refusal([] { web::attention_cell({{"step", "fly"}}); }).starts_with("arguments: /step: "));
  CHECK(refusal([] { web::attention_cell({{"step", "keys"}, {"row", 6}}); }).starts_with("arguments: /row: "));
}
