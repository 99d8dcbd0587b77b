#pragma once
// PyTorch's random fills on contiguous memory, in memory order, bit for bit and with the same number of 32-bit outputs. u32,
// u64, f24 and d53 are the draws of generator.h; T is float or double unless said otherwise, and where it is Half or BFloat16
// the draws are float's, rounded. Arguments are checked (ConfigError) before any draw.
#include <cstdint>
#include <span>

#include "autograd/dtype.h"
#include "autograd/random/generator.h"

namespace onestep {

/// Calls `f.template operator()<T>()` with the C++ type of a floating dtype, halves included; throws DTypeError naming `op`.
template <class F>
void dispatch_random(DType dtype, std::string_view op, F&& f) {
  if (dtype == DType::float16) return f.template operator()<Half>();
  if (dtype == DType::bfloat16) return f.template operator()<BFloat16>();
  dispatch_floating(dtype, op, f);
}

/// out[i] = u (to - from) + from, u an f24 (float) or d53 (double); a value rounded up to `to` becomes `from`.
/// torch.Tensor.uniform_; torch.rand is (0, 1).
template <class T>
void fill_uniform(std::span<T> out, double from, double to, Generator& g);

/// out[i] = z std + mean. Fewer than 16 values take z from Generator::normal, in double. From 16 on, blocks of 16 uniforms
/// turn into normals in place by Box-Muller (value j with value j + 8), and a ragged end is drawn again as one last full block
/// over the last 16 places (for the halves instead of that end, not after it). torch.Tensor.normal_; torch.randn is (0, 1).
template <class T>
void fill_normal(std::span<T> out, double mean, double std, Generator& g);

/// out[i] = -1 / rate log1p(-d53), in double. torch.Tensor.exponential_ (its lambda is `rate`).
template <class T>
void fill_exponential(std::span<T> out, double rate, Generator& g);

/// out[i] = low + r mod (high - low), r a u32 for ranges below 2^28, else a u64. torch.randint.
void fill_randint(std::span<int64_t> out, int64_t low, int64_t high, Generator& g);

/// Any value the type holds exactly and not negative: int64 u64 mod 2^63; int32 u32 mod 2^31; uint8 u32 mod 2^8; bool
/// u32 mod 2; float u32 mod (2^24 + 1); double u64 mod (2^53 + 1). torch.Tensor.random_ without arguments.
template <class T>
void fill_random(std::span<T> out, Generator& g);

/// A random order of 0 .. n-1, n = out.size(): for i < n - 1 the values i and i + u32 mod (n - i) change places; from
/// floor((2^32 - 1) / 20) values on, value i goes to a place u64 mod (i + 1) and the value there to place i. torch.randperm.
void fill_randperm(std::span<int64_t> out, Generator& g);

/// out[i] = true with probability p, in the generator's dialect: d53 < p, or MKL's stream. torch.Tensor.bernoulli_(p).
void fill_bernoulli(std::span<bool> out, double p, Generator& g);

/// out[i] = u < p[i], u an f24 (float) or d53 (double), in every dialect. torch.bernoulli(p).
template <class T>
void fill_bernoulli(std::span<bool> out, std::span<const T> p, Generator& g);

/// Which elements dropout with probability p keeps: fill_bernoulli with 1 - p, but p = 0 and p = 1 draw nothing.
void fill_dropout_mask(std::span<bool> keep, double p, Generator& g);

/// What dropout multiplies the kept elements by: 1 / (1 - p) in T, and 0 for p = 1.
template <class T>
T dropout_scale(double p);

/// num_samples category indices a row, by weights of any scale: [rows, categories] -> [rows, num_samples]. torch.multinomial.
/// Without replacement, or one sample: the categories in descending order of weight / Exp(1), ties by index. Otherwise a
/// sample is the first category whose cumulative share is >= a d53.
/// Throws ConfigError unless 1 <= num_samples, every weight is finite and >= 0, and every row has a positive weight (without
/// replacement at least num_samples of them; PyTorch would return categories of weight 0).
template <class T>
void multinomial(std::span<const T> weights, int64_t rows, int64_t num_samples, bool replacement, std::span<int64_t> out,
                 Generator& g);

}  // namespace onestep
