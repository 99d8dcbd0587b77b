// samples.jsonl: what it holds reads back, and a run that is resumed leaves no sample twice.
#include "train/log/sample_file.h"

#include <doctest/doctest.h>

#include "tests/process.h"
#include "tests/support.h"

using onestep::IoError;
using onestep::testing::read;
using onestep::testing::refusal;
using onestep::testing::TemporaryFolder;
using onestep::train::SampleFile;

TEST_CASE("sample file: samples are lines of JSON, and later ones are cut off") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "samples.jsonl";
  {
    SampleFile file(path, 0);
    file.write(9, "to \"be\"", " or\nnot");
    file.write(19, "a", "b");
  }
  const std::string first = R"({"step":9,"prompt":"to \"be\"","continuation":" or\nnot"})"
                            "\n",
                    second = R"({"step":19,"prompt":"a","continuation":"b"})"
                             "\n";
  CHECK(read(path) == first + second);
  { const SampleFile file(path, 20); }
  CHECK(read(path) == first + second);
  onestep::testing::write(path, first + second + R"({"step":29,"pro)");
  { const SampleFile file(path, 20); }
  CHECK(read(path) == first + second);
  { SampleFile(path, 10).write(12, "c", ""); }
  CHECK(read(path) == first + R"({"step":12,"prompt":"c","continuation":""})" + "\n");
  { const SampleFile file(path, 0); }
  CHECK(read(path) == "");
}

TEST_CASE("sample file: lines of something else are refused and stay") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "samples.jsonl";
  for (const std::string line : {"[]", "{}", R"({"step":"1"})", R"({"step":-1})", "x", ""}) {
    CAPTURE(line);
    const std::string bytes = "{\"step\":1}\n" + line + "\n";
    onestep::testing::write(path, bytes);
    CHECK(refusal<IoError>([&] { SampleFile(path, 5); }).starts_with(path + ": line 2"));
    CHECK(read(path) == bytes);
  }
}
