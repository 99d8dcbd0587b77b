// `onestep graph` and `onestep export-csv` from outside.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"

using namespace onestep::testing;

TEST_CASE("cli: graph draws the loss of a config with shapes and parameter names") {
  const std::string config = ONESTEP_SOURCE_DIR "/configs/sentence.json";
  const ProcessResult result = run_onestep({"graph", config, "--set", "model.attention=causal", "--set", "model.d_model=6"});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out.starts_with("digraph onestep {\n"));
  CHECK(result.out.ends_with("}\n"));
  for (const char* label :
       {"\"att.W_query.weight\\n[6, 6]\", shape=box", "\"tok_emb.weight\\n[", "\"cross_entropy\\n[]\", shape=ellipse"}) {
    CAPTURE(label);
    CHECK(result.out.find(label) != std::string::npos);
  }

  const TemporaryFolder folder;
  const std::string file = (folder.path() / "graph.dot").string();
  std::ofstream(file) << result.out;
  const ProcessResult picture = run_process({"dot", "-Tsvg", file});
  if (picture.status == 127) {
    MESSAGE("Graphviz is not installed: the graph was not rendered");
    return;
  }
  CHECK(picture.status == 0);
  CHECK(picture.err == "");
  CHECK(picture.out.find("att.W_query.weight") != std::string::npos);
}

TEST_CASE("cli: export-csv prints a run's metrics as a table") {
  const TemporaryFolder folder;
  const std::string run = folder.path().string(), file = run + "/metrics.jsonl";
  std::ofstream(file)
      << R"({"step": 0, "loss": 2.5, "lr": 0.001, "grad_norm": null, "tokens_per_second": 10, "seconds": 0.5, "a,\"b": 1})"
      << '\n'
      << R"({"step": 1, "loss": 2.25, "lr": 0.001, "val_loss": 2.125, "val_accuracy": 0.5})" << '\n';
  const ProcessResult result = run_onestep({"export-csv", run});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out ==
        "step,loss,lr,grad_norm,tokens_per_second,seconds,val_loss,val_accuracy,\"a,\"\"b\"\n"
        "0,2.5,0.001,,10,0.5,,,1\n"
        "1,2.25,0.001,,,,2.125,0.5,\n");

  for (const char* half : {"{", "{\"step\":2,\"lo", "{\"step\":2,\"loss\":2}"}) {
    CAPTURE(half);
    const auto whole = std::filesystem::file_size(file);
    std::ofstream(file, std::ios::app) << half;  // without its end, as a power cut may leave it
    CHECK(run_onestep({"export-csv", run}).out == result.out);
    std::filesystem::resize_file(file, whole);
  }
  std::ofstream(file, std::ios::app) << "{\"step\": \"two\"}\n";
  const ProcessResult refused = run_onestep({"export-csv", run});
  CHECK(refused.status == 2);
  CHECK(refused.out == "");
  CHECK(refused.err.starts_with("onestep: " + file + ": line 3: /step: "));
  std::ofstream(file) << "{\"step\": 0}\n{\"step\": " << std::string(1 << 20, '1') << "}\n";
  const ProcessResult endless = run_onestep({"export-csv", run});
  CHECK(endless.status == 2);
  CHECK(endless.out == "");
  CHECK(endless.err == "onestep: " + file + ": line 2: is longer than 1 MiB\n");
  CHECK(run_onestep({"export-csv", run + "/missing"}).err ==
        "onestep: " + run + "/missing: is not the folder of a run (it has no metrics.jsonl)\n");
}
