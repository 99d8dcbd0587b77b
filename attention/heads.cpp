#include "attention/heads.h"

namespace onestep::attention {

Tensor split_heads(const Tensor& x, int64_t num_heads) {
  Shape shape = x.shape();
  const int last = shape.rank() - 1;
  shape[last] /= num_heads;
  shape.insert(last, num_heads);
  return x
      .view(shape)         // [..., T, H, head_dim]
      .transpose(-3, -2);  // [..., H, T, head_dim]
}

Tensor merge_heads(const Tensor& x) {
  return x
      .transpose(-3, -2)  // [..., T, H, head_dim]
      .flatten(-2, -1);   // [..., T, H * head_dim]
}

Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  Shape shape = x.shape();
  shape.insert(shape.rank() - 2, times);
  return x
      .unsqueeze(-3)     // [..., H, 1, T, head_dim]
      .expand(shape)     // [..., H, times, T, head_dim]
      .flatten(-4, -3);  // [..., H * times, T, head_dim]
}

int64_t shared_width(const char* name, int64_t d_out, int64_t num_heads) {
  ONESTEP_CHECK(ShapeError, num_heads > 0, name, ": num_heads must be positive: got ", num_heads);
  ONESTEP_CHECK(ShapeError, d_out % num_heads == 0, name, ": d_out must be divisible by num_heads: d_out=", d_out,
                ", num_heads=", num_heads);
  return d_out;
}

}  // namespace onestep::attention
