#include "autograd/testing/gradcheck.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iomanip>
#include <limits>
#include <memory>
#include <sstream>
#include <string>

#include "autograd/kernels/parallel.h"
#include "base/error.h"
#include "base/open_file.h"
#include "cli/commands/commands.h"
#include "cli/guarded.h"

namespace onestep::cli {
namespace {

/// Goes on as the program that has the cases of every op and module, beside this one.
int become_checker(const std::string& chosen, double tolerance) {
  const std::string program = (program_folder("gradcheck") / "onestep-gradcheck").string();
  std::ostringstream bound;
  bound << std::setprecision(std::numeric_limits<double>::max_digits10) << tolerance;
  ::setenv("OMP_NUM_THREADS", std::to_string(kernels::num_threads()).c_str(), /*overwrite=*/1);
  ::execl(program.c_str(), program.c_str(), chosen.c_str(), bound.str().c_str(), nullptr);
  fail<IoError>(program, ": cannot be started: ", error_reason(errno),
                " (build the target onestep_gradcheck, or call ./onestep gradcheck in the checkout)");
}

}  // namespace

void add_gradcheck(Command& app, Action& action) {
  auto* command = app.add_subcommand(
      "gradcheck", "Compare the gradients of every op and module, and their derivatives, with finite differences");
  const auto chosen = std::make_shared<std::string>();
  const auto options = std::make_shared<GradcheckOptions>();
  command->add_option("--op", *chosen, "Check only this op or module")
      ->type_name("NAME")
      ->check(not_empty("the name of an op or module"));
  command->add_option("--tolerance", options->tolerance, "Largest relative error that passes (default: 1e-6)")
      ->type_name("X")
      ->check(at_least_0());
  command->callback(
      [&action, chosen, options] { action = [chosen, options] { return become_checker(*chosen, options->tolerance); }; });
}

}  // namespace onestep::cli
