// Where images are sampled.
#include <cmath>
#include <vector>

#include "autograd/creation.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"
#include "autograd/ops_nn.h"

namespace onestep {

Tensor pixel_indices(TensorList near, const Shape& sizes) {
  const auto dims = static_cast<size_t>(sizes.rank()), each = dims == 0 ? 0 : near.size() / dims;
  ONESTEP_CHECK(ShapeError, each > 0 && near.size() == each * dims && near.begin()->dim() == 2,
                "pixel_indices: needs places [N, P], as many of each dim of ", sizes);
  const Tensor& first = *near.begin();
  std::vector<Tensor> places;
  for (const Tensor& x : near) {
    ops::check_floating("pixel_indices", x);
    ops::check_same_dtype("pixel_indices", first, x);
    ONESTEP_CHECK(ShapeError, x.shape() == first.shape(), "pixel_indices: places of shape ", x.shape(), " beside ",
                  first.shape());
    places.push_back(ops::contiguous_values(ops::widened(x)));
  }
  int64_t combinations = 1;
  for (size_t d = 0; d < dims; ++d) combinations *= static_cast<int64_t>(each);
  const int64_t count = first.numel(), of_image = first.shape()[1];
  Tensor indices = empty({first.shape()[0], of_image, combinations}, DType::int64);
  dispatch_floating(places[0].dtype(), "pixel_indices", [&]<class T>() {
    std::vector<const T*> from;
    from.reserve(places.size());
    for (const Tensor& x : places) from.push_back(x.data<T>());
    auto* const to = indices.mutable_data<int64_t>();
    kernels::parallel_for(count, ops::kLoopCost * static_cast<double>(4 * combinations), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        int64_t* const found = to + i * combinations;
        found[0] = i / of_image;
        size_t before = 1;  // how many are there: each becomes as many as there are places in the next dim
        for (size_t d = 0; d < dims; before *= each, ++d) {
          const int64_t size = sizes[static_cast<int>(d)];
          for (size_t b = before; b-- > 0;) {
            const int64_t start = found[b];
            for (size_t k = each; k-- > 0;) {
              const T place = from[d * each + k][i];
              const bool outside = start < 0 || place < 0 || place >= static_cast<T>(size);
              found[b * each + k] = outside ? -1 : start * size + (place == place ? static_cast<int64_t>(place) : 0);
            }
          }
        }
      }
    });
  });
  return indices;
}

}  // namespace onestep
