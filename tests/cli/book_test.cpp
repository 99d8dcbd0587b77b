// `onestep book` from outside.
#include <doctest/doctest.h>

#include <string>

#include "autograd/kernels/isa.h"
#include "learn/book/chapter.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

TEST_CASE("cli book: the whole chapter and one section") {
  const ProcessResult all = run_onestep({"book"});
  CHECK(all.status == 0);
  CHECK(all.err == "");
  for (const book::Section& section : book::sections())
    CHECK_MESSAGE(contains(all.out, std::string(section.number) + "  " + section.title + "\n---"), section.number);
  const std::string simplified = run_onestep({"book", "3.3"}).out;
  CHECK(all.out.starts_with(simplified));
  CHECK(contains(simplified,
                 "const auto scores = naive_scores(query, inputs);\n"
                 "tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])\n"));
  CHECK(contains(simplified, "\n3.3.2  "));
  CHECK(!contains(simplified, "\n3.4.1  "));
}

TEST_CASE("cli book: the list of sections") {
  CHECK(run_onestep({"book", "3.3", "--list"}).out ==
        "3.3.1  simplified self-attention: one query\n"
        "3.3.2  simplified self-attention: all queries at once\n");
}

TEST_CASE("cli book: dropout masks of both dialects or of one") {
  const std::string torch = "tensor([[2., 2., 0., 2., 2., 0.]", mkl = "tensor([[2., 2., 2., 2., 2., 2.]";
  const auto shows = [](std::vector<std::string> arguments, const std::string& mask) {
    arguments.insert(arguments.begin(), {"book", "3.5.2"});
    return contains(run_onestep(arguments).out, mask);
  };
  CHECK(shows({}, torch));
  CHECK(shows({}, mkl));
  CHECK(shows({"--dialect", "torch"}, torch));
  CHECK(!shows({"--dialect", "torch"}, mkl));
  CHECK(!shows({"--dialect", "torch-mkl"}, torch));
  CHECK(shows({"--dialect", "torch-mkl"}, mkl));
}

TEST_CASE("cli book: every digit agrees on every instruction set and where CI is set with the generic kernels") {
  for (const auto isa : kernels::kAllIsas) {
    if (!kernels::isa_supported(isa)) continue;
    if (isa == kernels::Isa::generic && !in_ci()) continue;  // five seconds
    const ProcessResult result = run_onestep({"book", "--check"}, {.environment = {{"ONESTEP_ISA", kernels::name(isa)}}});
    CHECK(result.status == 0);
    CHECK_MESSAGE(result.out.ends_with(" numbers: every digit agrees\n"), result.out);
  }
  CHECK(run_onestep({"book", "3.5.2", "--check", "--dialect", "torch"}).status == 0);
}

TEST_CASE("cli book: a digit that differs is named and the exit status is 1") {
  const auto misprinted = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ONESTEP_BINARY_DIR "/tests/onestep_misprinted");
    return run_process(arguments);
  };
  for (const char* section : {"3", "3.4", "3.4.2"}) {
    const ProcessResult result = misprinted({"book", section, "--check"});
    CHECK(result.status == 1);
    CHECK(result.err == "");
    CHECK_MESSAGE(result.out.starts_with("qkv_context_2: element 0: expected 0.3062, got 0.3061 from const auto "), result.out);
  }
  CHECK(misprinted({"book", "--check"}).status == 1);
  CHECK(misprinted({"book", "--check", "3.5"}).status == 0);
  CHECK(misprinted({"book"}).out == run_onestep({"book"}).out);
}

TEST_CASE("cli book: unknown sections and dialects are refused") {
  const ProcessResult section = run_onestep({"book", "9.9"});
  CHECK(section.status == 2);
  CHECK(section.out == "");
  CHECK(section.err.starts_with("onestep: book: there is no section 9.9 ("));
  const ProcessResult dialect = run_onestep({"book", "--dialect", "mkl"});
  CHECK(dialect.status == 2);
  CHECK(dialect.err == "onestep: --dialect: must be torch or torch-mkl: got mkl (see onestep book --help)\n");
}

}  // namespace
}  // namespace onestep::testing
