// Checks the exercises that are linked into this program, or those named by number. Exit status: 0 solved, 1 not yet.
#include <iostream>

#include "learn/exercises/checks/check.h"

namespace {

using exercises::Check;
using exercises::Exercise;

/// What is wrong with one check, empty if nothing.
std::string complaint(const Check& check) {
  try {
    check.run();
  } catch (const exercises::Wrong& wrong) {
    return wrong.what();
  } catch (const onestep::Error& error) {
    return std::string("the engine refuses it: ") + error.what();
  }
  return {};
}

/// Runs the checks up to the first that fails.
bool solved(const Exercise& exercise) {
  std::cout << "exercise " << std::stoi(exercise.name) << ": " << exercise.title << '\n';
  for (const Check& check : exercise.checks) {
    const std::string wrong = complaint(check);
    std::cout << (wrong.empty() ? "  right  " : "  wrong  ") << check.what << '\n';
    if (wrong.empty()) continue;
    std::cout << "\nStill wrong: " << wrong << ".\nHint: " << exercise.hint << "\nThe file: learn/exercises/" << exercise.name
              << ".cpp\n";
    return false;
  }
  std::cout << "Solved.\n";
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string chosen = argc > 1 ? argv[1] : "";
  bool all = true, found = false;
  for (const Exercise& exercise : exercises::registered_exercises()) {
    if (!chosen.empty() && chosen != exercise.name) continue;
    found = true;
    all = solved(exercise) && all;
  }
  if (!found) std::cerr << "no exercise " << chosen << '\n';
  return all && found ? 0 : 1;
}
