#include <iostream>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "cli/commands/commands.h"
#include "train/distributed/mpi/ranks.h"

namespace onestep::cli {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* kCompiler = "GCC " __VERSION__;
#else
constexpr const char* kCompiler = "unknown compiler";
#endif

int print_version() {
  const kernels::Isa active = kernels::active_isa();  // may throw: before anything is printed
  std::cout << "onestep " << ONESTEP_VERSION << '\n'
            << "compiler: " << kCompiler << ", " << ONESTEP_BUILD_TYPE << " build\n"
            << "instruction set: " << kernels::name(active) << " (supported:";
  for (const auto isa : kernels::kAllIsas) {
    if (kernels::isa_supported(isa)) std::cout << ' ' << kernels::name(isa);
  }
  std::cout << ")\n"
            << "threads: " << kernels::num_threads() << '\n'
            << "MPI: " << mpi_version() << '\n';
  return 0;
}

}  // namespace

void add_version(Command& app, Action& action) {
  app.add_subcommand("version", "Print the version, compiler, instruction set and threads")->callback([&action] {
    action = print_version;
  });
}

}  // namespace onestep::cli
