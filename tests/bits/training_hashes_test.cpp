// One config and one seed give one hash, whatever computes it; the long form is in tests/CMakeLists.txt.
#include "tests/bits/training_hashes.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "autograd/kernels/isa.h"
#include "tests/autograd/kernels/kernel_testing.h"
#include "tests/support.h"

using namespace onestep;
using onestep::testing::differing_hashes;

TEST_CASE("bits: 25 steps end with the known hashes on every instruction set and 5 with the generic kernels") {
  const kernels::testing::Settings restore;
  kernels::set_num_threads(3);
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::isa_supported(isa)) continue;
    kernels::set_isa(isa);
    CAPTURE(std::string(kernels::name(isa)));
    CHECK(differing_hashes(isa == kernels::Isa::generic ? 5 : 25) == "");  // whose fused multiply-adds are calls
  }
}

TEST_CASE("bits: 25 steps end with the known hashes where threads share the smallest work") {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);
  kernels::set_num_threads(4);
  CHECK(differing_hashes(25) == "");
}

TEST_CASE("bits: 25 steps end with the known hashes where the number of threads changes from region to region") {
  const kernels::testing::Settings restore;
  kernels::set_min_work_per_thread(0);
  kernels::set_num_threads(4);
  static std::mt19937 engine(7);
  auto& team = kernels::ThreadTeam::instance();
  team.choose_threads([](int all) { return 1 + static_cast<int>(engine() % static_cast<unsigned>(all)); });
  const std::string differing = differing_hashes(25);
  team.choose_threads(nullptr);
  CHECK(differing == "");
}

TEST_CASE("bits: 25 steps end with the known hashes with and without the CPU's instructions for bfloat16") {
  const kernels::testing::Settings restore;
  for (const auto instructions : {kernels::Bf16Instructions::own, kernels::Bf16Instructions::fma}) {
    if (instructions == kernels::Bf16Instructions::own && !kernels::bf16_dot_supported()) continue;
    kernels::set_bf16_instructions(instructions);
    CHECK(differing_hashes(25) == "");
  }
}

TEST_CASE("bits: 500 steps end with the known hashes for three threads and where CI is set for one to eight") {
  const kernels::testing::Settings restore;
  for (const int threads : testing::in_ci() ? std::vector{1, 2, 3, 4, 8} : std::vector{3}) {
    kernels::set_num_threads(threads);
    CAPTURE(threads);
    CHECK(differing_hashes(500) == "");
  }
}
