#pragma once
// Programs of tensor operations as data: run on the engine and held against what PyTorch made of them.
//
// A program is one JSON object: `steps`, each [result or [results], op, [arguments], {keywords}], and `want`, what PyTorch gave
// (written by tests/programs/torch_programs.py):
//   status   a character a step: '.' ran, 'x' refused, '-' left out, as a step before did not give its operand
//   tensors  by name, at the end: [dtype, shape, values, flags, gradient, version]; values null: those it was made with;
//            an element null: anything, as rounding decides it;
//            flags 'r' requires grad, 'l' leaf; gradient null: none
// `absolute`, where it is given, is what a value may be away from PyTorch's whatever its size.
// Ops are in calls(); what concerns the graph alone (backward, no_grad and so on) in interpreter.cpp.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace onestep::programs {

enum class Verdict {
  equal,
  refused,    ///< A step that PyTorch runs.
  accepted,   ///< A step that PyTorch refuses: what comes of it may be wrong.
  different,  ///< Silently another result.
};

struct Outcome {
  Verdict verdict = Verdict::equal;
  size_t step = 0;   ///< Of the first disagreement; the number of steps where it lies in the end's tensors.
  std::string what;  ///< The error's text, or the tensor and both results.
};

Outcome check(const nlohmann::json& program);

/// The names of all ops that a step may have.
std::vector<std::string> operations();

/// "equal", "refused" and so on.
std::string name(Verdict verdict);

}  // namespace onestep::programs
