// onestep-gradcheck NAME TOLERANCE, all ops and modules with an empty NAME: what `onestep gradcheck` starts, which checks the
// arguments. A program of its own, since the cases of all ops take a fifth of the compiling, and no training needs them.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "autograd/testing/gradcheck.h"
#include "autograd/testing/op_case.h"
#include "base/error.h"
#include "base/suggest.h"
#include "cli/guarded.h"
#include "nn/module_case.h"

namespace onestep {
namespace {

using Check = std::function<GradcheckResult(const GradcheckOptions&)>;

/// gradcheck of one sample, and gradgradcheck unless its gradient has a kink there.
struct Sample {
  Check first, second;
};

/// What the checks of one order found.
struct Column {
  int64_t derivatives = 0;
  double worst_error = 0;
};

/// The results of all samples of one op or module.
struct Line {
  std::string kind;  ///< "op" or "module"
  std::vector<Sample> samples = {};
  Column first = {}, second = {};
  std::vector<std::string> failures = {};
};

/// Everything there is to check, by name; ops whose results have no gradient are left out.
std::map<std::string, Line> all_lines() {
  std::map<std::string, Line> lines;
  for (const OpCase& op_case : op_cases()) {
    for (const OpSample& sample : op_case.samples) {
      if (!sample.differentiable) continue;
      Line& line = lines.try_emplace(op_case.op, Line{"op"}).first->second;
      Check second;
      if (sample.twice_differentiable)
        second = [&sample](const GradcheckOptions& options) { return gradgradcheck(sample, options); };
      line.samples.push_back({[&sample](const GradcheckOptions& options) { return gradcheck(sample, options); }, second});
    }
  }
  for (const nn::ModuleCase& module_case : nn::module_cases()) {
    Line& line = lines.try_emplace(module_case.module, Line{"module"}).first->second;
    line.samples.push_back(
        {[&module_case](const GradcheckOptions& options) { return nn::gradcheck(module_case, options); },
         [&module_case](const GradcheckOptions& options) { return nn::gradgradcheck(module_case, options); }});
  }
  return lines;
}

void add(Line& line, Column& column, const GradcheckResult& result) {
  column.derivatives += result.derivatives;
  column.worst_error = std::max(column.worst_error, result.worst_error);
  if (!result.passed) line.failures.push_back(result.message);
}

void run(Line& line, const GradcheckOptions& options) {
  GradcheckOptions second = options;
  second.full_jacobian = 256;  // they are many
  for (const Sample& sample : line.samples) {
    add(line, line.first, sample.first(options));
    if (sample.second) add(line, line.second, sample.second(second));
  }
}

std::ostream& operator<<(std::ostream& out, const Column& column) {
  return out << std::setw(13) << column.derivatives << std::setw(10) << std::scientific << std::setprecision(1)
             << column.worst_error;
}

void print_check(const std::string& name, const Line& line) {
  std::cout << std::left << std::setw(7) << line.kind << std::setw(29) << name << std::right << std::setw(8)
            << line.samples.size() << line.first << line.second << (line.failures.empty() ? "  ok" : "  FAILED") << std::endl;
  for (const std::string& failure : line.failures) std::cout << "       " << failure << '\n';
}

int check_gradients(const std::string& chosen, const GradcheckOptions& options) {
  std::map<std::string, Line> lines = all_lines();
  if (!chosen.empty() && !lines.contains(chosen)) {
    std::vector<std::string> names;
    names.reserve(lines.size());
    for (const auto& [name, line] : lines) names.push_back(name);
    const std::string near = nearest(chosen, names);
    fail<ConfigError>("gradcheck: no differentiable op or module is called ", chosen,
                      did_you_mean(near, " (onestep gradcheck lists all)"));
  }
  std::cout << "kind   name                          samples  derivatives     worst       second     worst\n";
  int failed = 0, checked = 0;
  for (const char* kind : {"op", "module"}) {
    for (auto& [name, line] : lines) {
      if (line.kind != kind || (!chosen.empty() && name != chosen)) continue;
      run(line, options);
      print_check(name, line);
      ++checked;
      failed += !line.failures.empty();
    }
  }
  std::cout << checked - failed << " of " << checked
            << " agree with finite differences (largest relative error allowed: " << options.tolerance << ")\n";
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace onestep

int main(int argc, char** argv) {
  return onestep::cli::guarded([&] {
    using namespace onestep;
    ONESTEP_CHECK(ConfigError, argc == 3, "onestep-gradcheck is started by: onestep gradcheck");
    return check_gradients(argv[1], {.tolerance = std::atof(argv[2])});
  });
}
