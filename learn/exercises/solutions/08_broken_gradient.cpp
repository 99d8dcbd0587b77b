#include "learn/exercises/tasks.h"

namespace exercises {

Tensor recorded_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor values = x.detach();
  const Tensor inv_std = rsqrt(var(values, {-1}, /*correction=*/0, /*keepdim=*/true) + eps);
  const Tensor x_hat = (values - mean(values, {-1}, /*keepdim=*/true)) * inv_std;
  const Tensor y = x_hat * weight.detach() + bias.detach();
  return record("recorded_layer_norm", y, {x, weight, bias}, /*saved=*/{x_hat, inv_std, weight},
                [](const Backward& b) -> Grads {
                  const Tensor &normal = b.saved(0), &scale = b.saved(1), &gain = b.saved(2), &dy = b.grad();
                  const auto row_mean = [](const Tensor& t) { return mean(t, {-1}, /*keepdim=*/true); };
                  const Tensor dnormal = dy * gain;
                  const Tensor dx = scale * (dnormal - row_mean(dnormal) - normal * row_mean(dnormal * normal));
                  const Tensor dweight = sum(dy * normal, {0});
                  const Tensor dbias = sum(dy, {0});
                  return {dx, dweight, dbias};
                });
}

}  // namespace exercises
