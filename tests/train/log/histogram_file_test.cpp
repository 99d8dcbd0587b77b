// histograms.jsonl: parts of a range, and a run that is resumed leaves no line twice.
#include "train/log/histogram_file.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/process.h"
#include "tests/support.h"

using namespace onestep;
using onestep::testing::read;
using onestep::testing::refusal;
using onestep::testing::TemporaryFolder;
using Counts = std::vector<int64_t>;

TEST_CASE("histogram: parts of equal width from the lowest to the highest value") {
  const std::vector<double> values = {-1, 3, 0, 0.5, 1, 2.999, 2, 3};
  const train::Histogram four = train::histogram(values, 4);
  CHECK(four.low == -1);
  CHECK(four.high == 3);
  CHECK(four.counts == Counts{1, 2, 1, 4});
  CHECK(train::histogram(values, 1).counts == Counts{8});
  const std::vector<double> same = {2, 2, 2};
  const train::Histogram one = train::histogram(same, 4);
  CHECK(one.low == 2);
  CHECK(one.high == 2);
  CHECK(one.counts == Counts{3});
}

TEST_CASE("histogram file: lines of JSON whose later ones are cut off") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "histograms.jsonl";
  const std::vector<train::ParameterHistograms> step = {{"w", {0, 1, {2, 3}}, train::Histogram{-0.5, 0.5, {5}}},
                                                        {"b", {0, 0, {4}}}};
  train::HistogramFile(path, 0).write(9, step);
  const std::string first = R"({"step":9,"parameters":[{"name":"w","weights":{"low":0.0,"high":1.0,"counts":[2,3]},)"
                            R"("gradients":{"low":-0.5,"high":0.5,"counts":[5]}},)"
                            R"({"name":"b","weights":{"low":0.0,"high":0.0,"counts":[4]},"gradients":null}]})"
                            "\n";
  CHECK(read(path) == first);
  train::HistogramFile(path, 10).write(19, step);
  CHECK(read(path).size() == 2 * first.size() + 1);
  testing::write(path, read(path) + R"({"step":29,"para)");
  int64_t steps = 0;
  train::for_each_histograms(path, [&](const nlohmann::json& line) { steps += line["step"].get<int64_t>(); });
  CHECK(steps == 28);
  { const train::HistogramFile file(path, 19); }
  CHECK(read(path) == first);
}

TEST_CASE("histogram file: a line of another form is refused by the name of the file") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "histograms.jsonl";
  for (const std::string parameters :
       {"1", "[1]", R"([{"name":"w"}])", R"([{"name":"w","weights":{"low":0,"high":1,"counts":["2"]},"gradients":null}])"}) {
    CAPTURE(parameters);
    testing::write(path, R"({"step":1,"parameters":)" + parameters + "}\n");
    CHECK(refusal<IoError>([&] {
            train::for_each_histograms(path, [](const nlohmann::json&) {});
          }).starts_with(path + ": the line of step 1: /parameters: "));
  }
}
