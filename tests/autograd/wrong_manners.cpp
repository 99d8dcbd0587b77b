// Mistakes that leave the gradients of a simple call right: each is seen by another check of the op suite.
#include <cmath>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops.h"
#include "tests/autograd/wrong_rules.h"

namespace onestep::testing {
namespace {

using In = std::vector<Tensor>;

const std::vector<InputSpec> kSquare{{{3, 3}}}, kTwoSquares{{{3, 3}}, {{3, 3}}};

Tensor negated(const In& in, const Tensor& values) {
  return record("neg", values, {in[0]}, {}, [](const Backward& b) -> Grads { return {-b.grad()}; });
}

/// Reads `x` as if its elements lay in rows.
Tensor rows_of(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i];
  });
  return y;
}

std::vector<WrongRule> wrong_results() {
  return {
      {"exp: a series that ends too early", "float64 against the reference", kSquare,
       [](const In& in, bool wrong) { return wrong ? 1 + in[0] + in[0] * in[0] * 0.5 : exp(in[0]); }},
      {"the result has the wrong dtype", "float64 against the reference", kSquare,
       [](const In& in, bool wrong) { return wrong ? to(in[0], DType::float32) : in[0] * 1; }},
      {"softmax: the largest element is not subtracted",
       "float32 against float64",
       {{.shape = {2, 3}, .low = 90, .high = 100}},
       [](const In& in, bool wrong) { return wrong ? exp(in[0]) / sum(exp(in[0]), -1, true) : softmax(in[0], -1); }},
      {"the input is changed", "inputs kept", kSquare,
       [](const In& in, bool wrong) {
         Tensor x = in[0].detach();
         const Tensor y = negated(in, -x);
         if (wrong) fill_(x, 1);
         return y;
       }},
      {"the rule's saved tensor is stale", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         Tensor saved = in[0].detach().clone();
         const Tensor y = record("square", saved * saved, {in[0]}, {saved},
                                 [](const Backward& b) -> Grads { return {b.grad() * b.saved(0) * 2}; });
         if (wrong) fill_(saved, 1);
         return y;
       }},
      {"the result is kept for ever", "inputs kept", kSquare,
       [](const In& in, bool wrong) {
         static std::vector<Tensor> kept;
         const Tensor y = -in[0];
         if (!wrong) kept.clear();
         if (wrong) kept.push_back(y);
         return y;
       }},
      {"a graph is recorded under NoGradGuard", "NoGrad", kSquare,
       [](const In& in, bool wrong) {
         Tensor y = -in[0].detach();
         if (!wrong && !detail::should_record({in[0]})) return y;
         if (!in[0].requires_grad()) return y;
         const auto rule = [](const Backward& b) -> Grads { return {-b.grad()}; };
         auto node = std::make_shared<RecordedOp<decltype(rule)>>("neg", y, rule);
         detail::connect(*node, y, {in[0]}, {});
         detail::set_node(y, node);
         return y;
       }},
      {"a call depends on the calls before it", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         static double calls = 0;
         calls = wrong ? calls + 1 : 0;
         return in[0] * (1 + calls);
       }},
      {"strides are ignored", "layouts", kSquare,
       [](const In& in, bool wrong) { return negated(in, -(wrong ? rows_of(in[0]) : in[0].detach())); }},
      {"the sum depends on the number of threads",
       "threads and instruction sets",
       {{{101}}},
       [](const In& in, bool wrong) {
         const int64_t parts = wrong ? kernels::num_threads() : 1;
         Tensor total = zeros({}, in[0].dtype());
         for (const Tensor& part : chunk(in[0], parts)) total = total + sum(part);
         return total;
       }},
  };
}

std::vector<WrongRule> wrong_gradients() {
  return {
      {"the op is not recorded", "gradcheck", kSquare,
       [](const In& in, bool wrong) { return wrong ? -in[0].detach() : -in[0]; }},
      {"only the first operand is recorded", "gradcheck", kTwoSquares,
       [](const In& in, bool wrong) { return in[0] + (wrong ? in[1].detach() : in[1]); }},
      {"a gradient too few", "gradcheck", kTwoSquares,
       [](const In& in, bool wrong) {
         return record("add", in[0].detach() + in[1].detach(), {in[0], in[1]}, {}, [wrong](const Backward& b) -> Grads {
           return wrong ? Grads{b.grad()} : Grads{b.grad(), b.grad()};
         });
       }},
      {"a float32 gradient of a float64 input", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         return record("neg", -in[0].detach(), {in[0]}, {},
                       [wrong](const Backward& b) -> Grads { return {wrong ? to(-b.grad(), DType::float32) : -b.grad()}; });
       }},
      {"the float32 path has another factor", "float32 gradients", kSquare,
       [](const In& in, bool wrong) {
         return record("neg", -in[0].detach(), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           return {b.grad() * (wrong && b.grad().dtype() == DType::float32 ? -1.001 : -1.0)};
         });
       }},
      {"a repeated operand counts once", "one tensor twice", kTwoSquares,
       [](const In& in, bool wrong) {
         const bool same = wrong && &in[0].impl() == &in[1].impl();
         return in[0] + (same ? in[1].detach() : in[1]);
       }},
      {"no gradient unless both operands need one", "each input alone", kTwoSquares,
       [](const In& in, bool wrong) {
         return record("mul", in[0].detach() * in[1].detach(), {in[0], in[1]}, {in[0], in[1]},
                       [wrong](const Backward& b) -> Grads {
                         if (wrong && !(b.needs(0) && b.needs(1))) return {{}, {}};
                         return {b.grad() * b.saved(1), b.grad() * b.saved(0)};
                       });
       }},
      {"the rule scales the gradient that it is given", "inputs kept", kSquare,
       [](const In& in, bool wrong) {
         return record("neg", -in[0].detach(), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           if (!wrong) return {-b.grad()};
           Tensor grad = b.grad();
           return {mul_(grad, -1)};
         });
       }},
      {"the rule takes the gradient for contiguous", "upstream layouts", kSquare,
       [](const In& in, bool wrong) {
         return record("neg", -in[0].detach(), {in[0]}, {},
                       [wrong](const Backward& b) -> Grads { return {-(wrong ? rows_of(b.grad()) : b.grad())}; });
       }},
  };
}

}  // namespace

std::vector<WrongRule> wrong_manners() {
  std::vector<WrongRule> all = wrong_results();
  for (WrongRule& rule : wrong_gradients()) all.push_back(std::move(rule));
  if (kernels::isa_supported(kernels::Isa::avx2))
    all.push_back(
        {"one instruction set rounds otherwise", "threads and instruction sets", kSquare, [](const In& in, bool wrong) {
           const bool other = wrong && kernels::active_isa() != kernels::Isa::generic;
           return in[0] * (other ? 1 + 1e-7 : 1.0);
         }});
  return all;
}

}  // namespace onestep::testing
