// metrics.jsonl when a run is resumed: what is a line of a step is kept or cut by its number, anything else is never touched.
#include "train/log/metrics.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "tests/process.h"
#include "tests/support.h"

using namespace onestep::train;
using onestep::IoError;
using onestep::testing::TemporaryFolder;

namespace {

class Metrics {
 public:
  std::string path() const { return (folder_.path() / "metrics.jsonl").string(); }
  std::string text() const { return onestep::testing::read(path()); }
  void set(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  /// What remains of a text when a run continues with the step `first`, which is then logged.
  std::string go_on(const std::string& text, int64_t first) const {
    set(text);
    MetricsFile(path(), first).write({.step = first, .loss = 0.1F});
    const std::string all = this->text(), last = R"({"step":)" + std::to_string(first) + R"(,"loss":0.1,)";
    const size_t at = all.rfind(last);
    REQUIRE(at != std::string::npos);
    CHECK(all.find('\n', at) == all.size() - 1);
    return all.substr(0, at);
  }
  /// Why a text is refused, which then stays as it is.
  std::string refusal(const std::string& text, int64_t first) const {
    set(text);
    const std::string reason = onestep::testing::refusal<onestep::IoError>([&] { const MetricsFile file(path(), first); });
    CHECK(this->text() == text);
    return reason;
  }

 private:
  TemporaryFolder folder_;
};

const std::string kOurs = R"({"step":0,"loss":1.5,"lr":0.1})"
                          "\n"
                          R"({"step":1,"loss":1.25,"lr":0.1})"
                          "\n";

}  // namespace

TEST_CASE("metrics: lines from a step on are cut off and half a line at the end") {
  const Metrics metrics;
  CHECK(metrics.go_on("", 0) == "");
  CHECK(metrics.go_on(kOurs, 2) == kOurs);
  CHECK(metrics.go_on(kOurs, 1) == kOurs.substr(0, kOurs.find('\n') + 1));
  CHECK(metrics.go_on(kOurs, 0) == "");
  const std::string next = R"({"step":2,"loss":1.125})";
  for (size_t bytes = 1; bytes < next.size(); ++bytes) CHECK(metrics.go_on(kOurs + next.substr(0, bytes), 2) == kOurs);
  CHECK(metrics.go_on(kOurs + next, 2) == kOurs);  // all of a line but its end
}

TEST_CASE("metrics: lines that another JSON tool has rewritten are kept as they are") {
  const Metrics metrics;
  const std::string rewritten =
      "{\"step\": 0, \"loss\": 1.5, \"lr\": 1e-1}\r\n"
      "  {\"lr\" : 0.10000000000000001, \"loss\" : null, \"step\" : 1.0}\t\n"
      "{\"mine\": 7, \"step\": 20E-1}\n";
  CHECK(metrics.go_on(rewritten, 3) == rewritten);
  CHECK(metrics.go_on(rewritten, 2) == rewritten.substr(0, rewritten.find("{\"mine\"")));
  const std::string no_end = rewritten.substr(0, rewritten.size() - 1);
  CHECK(metrics.go_on(no_end, 3) == rewritten);
}

TEST_CASE("metrics: a line that is not the line of a step is refused by its number and nothing is cut") {
  const Metrics metrics;
  CHECK(metrics.refusal(kOurs + "[1, 2]\n", 0) ==
        metrics.path() + ": line 3: must be an object: got [1,2] (repair or move the file to continue)");
  for (const std::string foreign :
       {"notes of mine\n", "notes of mine", "\n", "{\"step\":2,\"loss\":\n", "{\"loss\":2}\n", "{}", "{\"step\":1}\n",
        "{\"step\":-1}\n", "{\"step\":2.5}\n", "{\"step\":\"2\"}\n", "{\"step\":null}\n", "{\"step\":1e300}\n",
        "{\"step\":2,\"step\":3}\n", "{\"step\":2,\"loss\":\"low\"}\n", "[{\"step\":2}]", "{ \"step\":2, \"loss\""}) {
    CAPTURE(foreign);
    for (const int64_t first : {0, 1, 2, 9})
      CHECK(metrics.refusal(kOurs + foreign, first).starts_with(metrics.path() + ": line 3"));
    if (foreign.ends_with('\n')) CHECK(metrics.refusal(foreign + kOurs, 2).starts_with(metrics.path() + ": line "));
  }
}
