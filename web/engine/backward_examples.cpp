// Programs with which the room on the backward pass begins.
#include <nlohmann/json.hpp>

#include "web/engine/backward_steps.h"
#include "web/engine/evaluate.h"

namespace onestep::web {
namespace {

struct Example {
  const char *name, *title, *about, *program;
  const char* order = "newest first";
};

constexpr Example kExamples[] = {
    {"product", "Sum and product", "Every op passes on the gradient that arrives, times its own derivative.",
     "a = 2\nb = -3\nc = 10\nf = -2\nd = a * b + c\nd * f"},
    {"twice", "A value used twice", "x is used three times. What arrives from each use is added up.",
     "x = 3\ny = x * x\ny + 4 * x"},
    {"neuron", "A neuron", "A weighted sum and an activation. The gradient of tanh is small where tanh is flat.",
     "x = [0.5, -1.5]\nw = [0.8, 0.3]\nb = 0.4\ntanh(dot(w, x) + b)"},
    {"cross_entropy", "Softmax with cross entropy",
     "The gradient of the logits is probabilities minus one-hot target: compare it with the softmax of the logits.",
     "logits = [2.0, 1.0, 0.1]\ntarget = constant(0)\ncross_entropy(logits, target)"},
    {"layers", "Two layers and a loss",
     "A small network: the bias was broadcast over the rows, so its gradient is a sum over them.",
     "x = constant([[1, 2], [-1, 0.5]])\nW1 = [[0.4, -0.2], [0.1, 0.3]]\nb1 = [0.1, -0.1]\nW2 = [[0.7], [-0.5]]\n"
     "h = relu(x @ W1 + b1)\nmean((h @ W2 - constant([[1], [0]]))^2)"},
    {"attention", "Attention of three tokens",
     "Scores, a causal mask, softmax, context. Where the mask is, nothing flows back into scores, queries and keys.",
     "x = constant([[0.43, 0.15], [0.55, 0.87], [0.57, 0.85]])\nWq = [[0.3, 0.5], [0.1, 0.9]]\n"
     "Wk = [[0.2, 0.7], [0.6, 0.4]]\nWv = [[0.8, 0.1], [0.3, 0.5]]\nq = x @ Wq\nk = x @ Wk\nv = x @ Wv\n"
     "scores = mask_future(q @ k.T) / sqrt(2)\nweights = softmax(scores)\nsum((weights @ v)^2)"},
    {"order", "A broken order of visits",
     "y is used by the sum and by the product. Visited as soon as it is reached, y passes on a part of its gradient; the rest "
     "comes too late, and the gradient of x is wrong. Newest first, the engine's order, waits for both.",
     "x = 2\ny = x * x\nz = y * 3\ny + z", "depth first"},
    {"saved", "A write to a saved tensor",
     "exp saves its result for its gradient. The write destroys it, and the engine notices when the rule asks for it.",
     "x = [0.5, 1.0]\ny = exp(x)\ny *= 2\nsum(y)"},
    {"leaf", "A write to a leaf",
     "x is where gradients are collected. A recorded write would lose the place: it is refused at once.",
     "x = [1, 2, 3]\nx += 1\nsum(x * x)"},
    {"view", "A write through an element",
     "y[0] is a view of y's memory. A write to it is recorded: the old element's gradient ends there, the new one's begins.",
     "x = [1, 2, 3]\ny = x * 2\nw = 5\ny[0] = w * w\nsum(y * y)"},
    {"kink", "A kink", "relu has no derivative at 0. The engine takes 0, finite differences see half of each side.",
     "x = [-1, 0, 2]\nsum(relu(x))"},
    {"detach", "Cut from the graph",
     "detach() makes a constant of y: nothing flows through it, though the result depends on it. Finite differences tell.",
     "x = 3\ny = x * x\nx * y.detach()"},
    {"again", "Backward twice", "A backward pass frees what ops have saved. A second one has nothing to work with.",
     "x = [1, 2]\ny = sum(x * x)\ny.backward()\ny"},
    {"scalar", "Not a single number",
     "Backward begins with one number. A tensor of several has to be reduced first, by sum or mean.", "x = [1, 2, 3]\nexp(x)"},
    {"vanishing", "Vanishing gradients", "Each sigmoid has a derivative of at most a quarter: five of them leave a thousandth.",
     "x = 0.5\nsigmoid(sigmoid(sigmoid(sigmoid(sigmoid(x)))))"},
};

}  // namespace

nlohmann::json backward_examples(const nlohmann::json& /*arguments*/) {
  nlohmann::json all = nlohmann::json::array();
  for (const Example& e : kExamples)
    all.push_back({{"name", e.name}, {"title", e.title}, {"about", e.about}, {"program", e.program}, {"order", e.order}});
  return all;
}

std::vector<Method> backward_methods() {
  return {{"backward", backward}, {"backward_examples", backward_examples}, {"expression_functions", expression_functions}};
}

}  // namespace onestep::web
