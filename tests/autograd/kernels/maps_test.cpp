// Elementwise kernels at every size, with steps, in place, and against the double loops.
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

struct Map {
  std::string name;
  void (*narrow)(const float*, float*, int64_t);
  void (*wide)(const double*, double*, int64_t);
};
const Map kMaps[] = {{"exp", exp, exp},
                     {"log", log, log},
                     {"log2", log2, log2},
                     {"log10", log10, log10},
                     {"sqrt", sqrt, sqrt},
                     {"rsqrt", rsqrt, rsqrt},
                     {"sin", sin, sin},
                     {"cos", cos, cos},
                     {"tan", tan, tan},
                     {"tanh", tanh, tanh},
                     {"erf", erf, erf},
                     {"erfc", erfc, erfc},
                     {"silu", silu, silu},
                     {"sigmoid", sigmoid, sigmoid},
                     {"gelu", gelu_erf, gelu_erf},
                     {"gelu tanh", gelu_tanh, gelu_tanh}};

TEST_CASE("kernels: maps agree with the double loops at every size") {
  for (const Map& map : kMaps) {
    CAPTURE(map.name);
    for (const int64_t n : sizes()) {
      CAPTURE(n);
      const Floats x = random_floats(n, 0.1f, 5.0f);
      Floats y(x.size() + 1, 7.0f);
      Doubles want(x.size());
      map.narrow(x.data(), y.data(), n);
      map.wide(widened(x).data(), want.data(), n);
      CHECK(y.back() == 7.0f);
      y.pop_back();
      check_close(y, want, 3e-7, 1e-7);
      Floats in_place = x;
      map.narrow(in_place.data(), in_place.data(), n);
      CHECK(first_difference(in_place, y) == -1);
    }
    check_same_bits([&] {
      const Floats x = random_floats(300001, 0.1f, 5.0f);
      Floats y(x.size());
      map.narrow(x.data(), y.data(), 300001);
      return y;
    });
  }
}

struct MapGrad {
  std::string name;
  void (*narrow)(const float*, const float*, float*, int64_t);
  void (*wide)(const double*, const double*, double*, int64_t);
};
const MapGrad kMapGrads[] = {
    {"silu", silu_grad, silu_grad}, {"gelu tanh", gelu_tanh_grad, gelu_tanh_grad}, {"gelu", gelu_erf_grad, gelu_erf_grad}};

TEST_CASE("kernels: gradients of activations agree with the double loops") {
  for (const MapGrad& map : kMapGrads) {
    CAPTURE(map.name);
    for (const int64_t n : sizes()) {
      CAPTURE(n);
      const Floats x = random_floats(n, -8, 8), dy = random_floats(n, -2, 2, 9);
      Floats dx(x.size());
      Doubles want(x.size());
      map.narrow(x.data(), dy.data(), dx.data(), n);
      map.wide(widened(x).data(), widened(dy).data(), want.data(), n);
      check_close(dx, want, 1e-6, 1e-6);
    }
    const Floats far = {-1e30f, -200.0f, -14.0f, 14.0f, 200.0f, 1e30f}, one(6, 1.0f);
    Floats dx(6);
    map.narrow(far.data(), one.data(), dx.data(), 6);
    check_close(dx, {0, 0, 0, 1, 1, 1}, 0, 2e-5);
    check_same_bits([&] {
      const Floats x = random_floats(100003, -20, 20), dy = random_floats(100003, -2, 2, 9);
      Floats result(x.size());
      map.narrow(x.data(), dy.data(), result.data(), 100003);
      return result;
    });
  }
}

struct Zip {
  std::string name;
  void (*narrow)(const float*, int64_t, const float*, int64_t, float*, int64_t);
  float (*want)(float, float);
};
const Zip kZips[] = {
    {"add", add, [](float a, float b) { return a + b; }},
    {"sub", sub, [](float a, float b) { return a - b; }},
    {"mul", mul, [](float a, float b) { return a * b; }},
    {"div", div, [](float a, float b) { return a / b; }},
    {"maximum", maximum, [](float a, float b) { return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b); }},
    {"minimum", minimum, [](float a, float b) { return std::isnan(a) || std::isnan(b) ? kNaN : std::min(a, b); }},
};

TEST_CASE("kernels: binary maps are exact with every step") {
  for_each_isa([&] {
    for (const Zip& zip : kZips) {
      CAPTURE(zip.name);
      for (const int64_t n : sizes()) {
        Floats a = random_floats(n + 1, -3, 3), b = random_floats(n + 1, -3, 3, 9);
        if (n > 20) a[3] = b[7] = a[9] = b[9] = kNaN, a[11] = kInfinity, b[12] = -kInfinity;
        for (const int64_t a_step : {0, 1}) {
          for (const int64_t b_step : {0, 1}) {
            Floats y(static_cast<size_t>(n)), want;
            zip.narrow(a.data(), a_step, b.data(), b_step, y.data(), n);
            for (int64_t i = 0; i < n; ++i) {
              want.push_back(zip.want(a[static_cast<size_t>(i * a_step)], b[static_cast<size_t>(i * b_step)]));
            }
            CAPTURE(n);
            CHECK(first_difference(y, want) == -1);
          }
        }
      }
    }
  });
}

AdamUpdate adam(bool decoupled) { return {1e-3, 0.9, 0.999, 1e-8, 0.01, 3, decoupled}; }

TEST_CASE("kernels: optimizer steps agree with the double loops and with themselves") {
  for (const int64_t n : {0, 1, 15, 16, 17, 100, 70001}) {
    CAPTURE(n);
    const Floats p = random_floats(n, -1, 1), g = random_floats(n, -1, 1, 2), m = random_floats(n, -1, 1, 3),
                 v = random_floats(n, 0, 1, 4);
    for (const bool decoupled : {false, true}) {
      const auto run = [&] {
        Floats np = p, nm = m, nv = v;
        adam_step(np.data(), g.data(), nm.data(), nv.data(), n, adam(decoupled));
        np.insert(np.end(), nm.begin(), nm.end());
        np.insert(np.end(), nv.begin(), nv.end());
        return np;
      };
      Doubles wp = widened(p), wm = widened(m), wv = widened(v);
      adam_step(wp.data(), widened(g).data(), wm.data(), wv.data(), n, adam(decoupled));
      wp.insert(wp.end(), wm.begin(), wm.end());
      wp.insert(wp.end(), wv.begin(), wv.end());
      check_close(run(), wp, 1e-6, 1e-6);
      check_same_bits(run);
    }
    for (const SgdUpdate& options : {SgdUpdate{0.1, 0, 0, 0.01, false, false}, SgdUpdate{0.1, 0.9, 0.1, 0, false, false},
                                     SgdUpdate{0.1, 0.9, 0, 0.02, true, true}}) {
      const auto run = [&] {
        Floats np = p, buffer = m;
        sgd_step(np.data(), g.data(), options.momentum == 0 ? nullptr : buffer.data(), n, options);
        np.insert(np.end(), buffer.begin(), buffer.end());
        return np;
      };
      Doubles wp = widened(p), wm = widened(m);
      sgd_step(wp.data(), widened(g).data(), wm.data(), n, options);
      wp.insert(wp.end(), wm.begin(), wm.end());
      check_close(run(), wp, 1e-6, 1e-6);
      check_same_bits(run);
    }
  }
}

}  // namespace
}  // namespace onestep::kernels
