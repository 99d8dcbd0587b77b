#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

void check_rows() {
  const Tensor scores = random_leaf({2, 3, 4}, 1).detach();
  const Tensor powers = exp(scores);
  require_close(stable_softmax(scores), softmax(scores, -1),
                {{powers / sum(powers), "the weights of all rows together sum to 1: each row should, along dim -1"},
                 {softmax(scores, 1), "the weights sum to 1 along dim 1: it should be the last one"},
                 {softmax(scores, 0), "the weights sum to 1 along dim 0: it should be the last one"}});
}

void check_large_scores() {
  for (const double size : {1000.0, -1000.0}) {
    const Tensor scores = tensor({{size, size + 1}, {size + 2, size}});
    const Tensor yours = stable_softmax(scores);
    require(
        !any(isnan(yours)).item<bool>(),
        "scores of size 1000 give NaN: exp overflows (or the sum underflows to 0); subtract something from the scores first");
    require_close(yours, softmax(scores, -1));
  }
}

void check_rows_far_apart() {
  const Tensor scores = tensor({{500.0, 501.0}, {0.0, 1.0}});
  const Tensor yours = stable_softmax(scores);
  require(!any(isnan(yours)).item<bool>(),
          "one number was subtracted from all rows: a row far below it loses everything; subtract each row's own maximum");
  require_close(yours, softmax(scores, -1));
}

const double kInf = std::numeric_limits<double>::infinity();

const Register registered{
    {"02_softmax",
     "a softmax that survives large scores",
     "sum and amax take dims and keepdim: with keepdim = true [T, T] becomes [T, 1], which broadcasts back over the row",
     {{"the weights of the book for one row of scores",
       [] { require_printed(stable_softmax(matmul(journey(), journey()[1])), "simple_w_soft"); }},
      {"each row of a batch sums to 1", check_rows},
      {"scores of size 1000", check_large_scores},
      {"rows that lie far apart", check_rows_far_apart},
      {"a score of -inf has the weight 0", [] {
         require_close(stable_softmax(tensor({{0.0, -kInf}, {1.0, 1.0}})), tensor({{1.0, 0.0}, {0.5, 0.5}}));
       }}}}};

}  // namespace
}  // namespace exercises
