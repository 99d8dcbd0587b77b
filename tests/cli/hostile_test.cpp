// Command lines that must be refused (hostile_lines.h): the answer is exit status 2 and one sentence, soon and without a hang.
#include <doctest/doctest.h>

#include "tests/cli/hostile_lines.h"
#include "tests/support.h"

using namespace onestep::testing;
namespace fs = std::filesystem;

namespace {

using Table = CommandLines (*)(const Place&);

/// A trained run of which each line may have one file replaced.
class FreshRun {
 public:
  explicit FreshRun(const Place& place) : place_(place) { fs::copy(run_, good_, fs::copy_options::recursive); }

  void replace(const std::string& file, const std::string& by) const {
    fs::remove_all(run_);
    fs::copy(good_, run_, fs::copy_options::recursive);
    fs::rename(run_ + file, run_ + file + ".before");
    fs::create_symlink(place_.path(by), run_ + file);
  }

 private:
  const Place& place_;
  const std::string run_ = place_.path("run"), good_ = place_.path("good");
};

void expect_refused(Table table) {
  const Place place;
  const FreshRun run(place);
  for (const CommandLine& line : table(place)) {
    if (!line.replaced.empty()) run.replace(line.replaced, line.by);
    const ProcessResult result = Place::run(line.arguments);
    std::string shown;
    for (const std::string& argument : line.arguments) shown += argument.substr(0, 80) + ' ';
    CAPTURE(shown);
    CAPTURE(line.replaced + " " + line.by);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err.starts_with("onestep: " + line.named));
    CHECK(result.err.find('\n') == result.err.size() - 1);  // one line
  }
  CHECK_FALSE(fs::exists(place.path("out")));
}

}  // namespace

TEST_CASE("hostile: commands that read a file refuse what is not one") { expect_refused(files_that_are_none); }

TEST_CASE("hostile: invalid configs") { expect_refused(configs_that_are_none); }

TEST_CASE("hostile: commands on runs refuse what is not one") { expect_refused(runs_that_are_none); }

TEST_CASE("hostile: other commands and options") { expect_refused(other_arguments); }

TEST_CASE("hostile: options with invalid values") { expect_refused(option_values); }

TEST_CASE("hostile: command lines that say too little or too much") { expect_refused(too_little_or_too_much); }

TEST_CASE("hostile: a run whose files were replaced") { expect_refused(replaced_files); }

TEST_CASE("hostile: keys with values that they cannot have") { expect_refused(values_of_keys); }

TEST_CASE("hostile: there are more than 400 command lines") {
  const Place place;
  size_t lines = 0;
  for (const Table table : {files_that_are_none, configs_that_are_none, runs_that_are_none, other_arguments, replaced_files,
                            option_values, too_little_or_too_much, values_of_keys})
    lines += table(place).size();
  MESSAGE(lines << " command lines");
  CHECK(lines > 400);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)  // they take terabytes themselves
#define LIMITED_MEMORY
namespace {

// The program where no more than `kib` KiB of addresses are to be had.
ProcessResult limited(int kib, const Strings& arguments) {
  Strings command{"sh", "-c", "ulimit -v " + std::to_string(kib) + "; exec \"$0\" \"$@\"", ONESTEP_BINARY_DIR "/onestep"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_process(command);
}

}  // namespace

TEST_CASE("hostile: too little memory to start in") {
  int started = 0;
  bool loading = false;  // with less the system ends what it could not even begin to load
  for (int kib = 4000; started < 8 && kib < 1'000'000; kib += 250) {
    CAPTURE(kib);
    const ProcessResult result = limited(kib, {"version"});
    loading = loading || result.status == 127;  // the system's loader could not continue, and said so
    started += result.status == 0;
    if (loading && result.status != 127 && result.status != 0) {
      CHECK(result.status == 2);
      CHECK(result.err == "onestep: out of memory (try a smaller model, batch or context)\n");
    }
  }
  CHECK(started == 8);
}
#endif

TEST_CASE("hostile: more memory and more threads than there are get one sentence before training starts") {
  const Place place;
  place.write("huge.json",
              R"({"model": {"kind": "gpt", "num_layers": 1000, "num_heads": 64, "d_model": 65536, "context_length": 5},
                               "data": {"kind": "text", "text": "the quick brown fox jumps over the lazy dog and then goes home"}})");
  const ProcessResult huge = Place::run({"train", place.path("huge.json"), "--out", place.path("out")});
  CHECK(huge.status == 2);
  CHECK(huge.err.starts_with("onestep: " + place.path("huge.json") + ": training needs "));
  CHECK(contains(huge.err, " MiB left "));
  CHECK_FALSE(fs::exists(place.path("out")));
#ifdef LIMITED_MEMORY
  const ProcessResult threads = limited(1000000, {"--threads", "1000", "eval", place.path("run")});
  CHECK(threads.status == 2);
  CHECK(threads.err.starts_with("onestep: threads: the system lets "));
  CHECK(threads.err.ends_with(" run at once, not 1000: Resource temporarily unavailable (set --threads or OMP_NUM_THREADS)\n"));
  const ProcessResult batch =
      limited(1000000, {"train", place.path("config.json"), "--set", "train.batch_size=1000000", "--out", place.path("out")});
  CHECK(batch.status == 2);
  CHECK(batch.err.starts_with("onestep: " + place.path("config.json") + ": training needs "));
#endif
}

#if defined(LIMITED_MEMORY) && defined(NDEBUG)  // frames are larger without optimisation
TEST_CASE("hostile: a stack of 64 KiB is enough and OMP_STACKSIZE is nothing to the library's threads") {
  const Place place;
  const auto train = [&](const std::string& limit, const std::string& out) {
    const Strings command{"sh",
                          "-c",
                          limit + "; exec \"$0\" --threads 4 train \"$1\" --set train.steps=20 --quiet --out \"$2\"",
                          ONESTEP_BINARY_DIR "/onestep",
                          ONESTEP_SOURCE_DIR "/tests/configs/bits_gpt.json",
                          place.path(out)};
    const ProcessResult result = run_process(command);
    CAPTURE(limit);
    CHECK(result.err == "");
    CHECK(result.status == 0);
  };
  train("ulimit -s 64", "small");
  train("export OMP_STACKSIZE=16k", "other");
  const Strings eval{"sh", "-c", "ulimit -s 64; exec \"$0\" eval \"$1\" --quiet", ONESTEP_BINARY_DIR "/onestep",
                     place.path("small")};
  CHECK(run_process(eval).status == 0);
}
#endif
