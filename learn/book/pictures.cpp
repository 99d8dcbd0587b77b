#include "learn/book/pictures.h"

#include <cmath>
#include <limits>

#include "attention/mask.h"
#include "attention/multi_head_attention.h"
#include "attention/self_attention.h"
#include "learn/book/heat_map.h"
#include "learn/book/sections.h"

namespace onestep::book {
namespace {

using attention::causal_mask;
using attention::masked_attention_weights;
using Labels = std::vector<std::string>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Labels kWords = {"Your", "journey", "starts", "with", "one", "step"};

/// A square map: a row for each word as a query, a column for each as a key.
HeatMap words_map(const std::string& title, const Tensor& values) {
  return {.title = title, .values = values, .rows = kWords, .columns = kWords};
}

/// The same with the sum of each row beside it.
HeatMap with_sums(const std::string& title, const Tensor& weights) {
  Labels columns = kWords;
  columns.push_back("sum");
  return {.title = title, .values = cat({weights, sum(weights, -1, true)}, 1), .rows = kWords, .columns = columns};
}

/// Scores of SelfAttention_v2 from seed 789, as in section 3.5.1: [6, 6].
Tensor scores_789() {
  Generator generator(789);
  const attention::SelfAttention_v2 v2(3, 2, false, generator);
  return matmul(v2.W_query(journey()), v2.W_key(journey()).t()).detach();
}

std::string weights_picture() {
  const Tensor inputs = journey(), scores = matmul(inputs, inputs.t()), weights = softmax(scores, -1);
  return heat_maps_svg({words_map("scores x x^T [6, 6]", scores), with_sums("weights: softmax of each row [6, 6]", weights)},
                       "Dot products of six words with each other, and the attention weights that softmax makes of them.");
}

/// One query and six keys of `d` normal numbers, scores as they are or divided by sqrt(d): [6].
Tensor weights_of_width(int64_t d, bool scaled) {
  Generator generator(123);
  const Tensor query = randn({d}, generator), keys = randn({6, d}, generator);
  return softmax(matmul(keys, query) / (scaled ? std::sqrt(static_cast<double>(d)) : 1.0), -1);
}

std::string scaling_picture() {
  Labels rows;
  std::vector<Tensor> plain, scaled;
  for (const int64_t d : {4, 16, 64, 256, 1024}) {
    rows.push_back("d = " + std::to_string(d));
    plain.push_back(weights_of_width(d, false));
    scaled.push_back(weights_of_width(d, true));
  }
  const Labels keys = {"key 1", "key 2", "key 3", "key 4", "key 5", "key 6"};
  return heat_maps_svg(
      {{.title = "softmax(q k^T)", .values = stack(plain), .rows = rows, .columns = keys},
       {.title = "softmax(q k^T / sqrt(d))", .values = stack(scaled), .rows = rows, .columns = keys}},
      "Attention weights of a random query on six random keys: without scaling one key gets all the weight as the "
      "width grows, with scaling several do.");
}

/// Cells coloured by word, named by word and feature (2c: the third feature of word 2), from indices into [3, 4].
HeatMap features_map(const std::string& title, const Tensor& indices, const Labels& rows) {
  Labels texts;
  std::vector<double> words;
  for (const int64_t i : indices.to_vector<int64_t>()) {
    const int64_t word = i / 4;
    words.push_back(static_cast<double>(word) + 0.5);
    texts.push_back(std::to_string(word + 1) + std::string(1, static_cast<char>('a' + i % 4)));
  }
  return {.title = title, .values = from_values(words, indices.shape()), .rows = rows, .texts = texts, .largest = 2.5};
}

std::string heads_picture() {
  const Tensor x = arange(12).view({3, 4});                // 3 words of 4 features, for 2 heads
  const Tensor heads = x.view({3, 2, 2}).transpose(0, 1);  // [H, T, head_dim]
  const Tensor mixed = x.view({2, 3, 2});                  // the same shape by a view alone
  const Labels words = {"word 1", "word 2", "word 3"}, unknown = {"row 1", "row 2", "row 3"};
  return heat_maps_svg(
      {features_map("features [3, 4]", x, words), features_map("head 1 [3, 2]", heads[0], words),
       features_map("head 2 [3, 2]", heads[1], words), features_map("no transpose: 1", mixed[0], unknown),
       features_map("no transpose: 2", mixed[1], unknown)},
      "Three words of four features: view and transpose give each head two features of every word; a view alone "
      "gives the first head all of word 1 and half of word 2.");
}

std::string causal_picture() {
  const Tensor scores = scores_789() / std::sqrt(2);
  const Tensor after = softmax(scores, -1) * tril(ones({6, 6}));
  const Tensor masked = scores.masked_fill(causal_mask(6), -kInfinity);
  return heat_maps_svg({with_sums("zeros after the softmax", after), words_map("or -inf before it", masked),
                        with_sums("and the softmax of that", softmax(masked, -1))},
                       "Weights with the future set to zero after the softmax, whose rows no longer sum to 1; scores with the "
                       "future at -inf; and their softmax, whose rows do.");
}

std::string mask_picture() {
  const Tensor mask = causal_mask(6);
  const auto corner = mask.slice(0, 0, 4).slice(1, 0, 4);
  const Labels four(kWords.begin(), kWords.begin() + 4);
  HeatMap whole = words_map("mask [6, 6]", mask), cut = words_map("cut to 4 tokens [4, 4]", corner);
  whole.decimals = cut.decimals = 0;
  cut.rows = cut.columns = four;
  return heat_maps_svg({whole, cut},
                       "The causal mask of six tokens, 1 where a key is masked, and its top left corner for a text of four.");
}

std::string dropout_picture() {
  const Tensor weights = masked_attention_weights(scores_789(), causal_mask(6), /*d_k=*/2);
  Generator generator(123);
  const Tensor one = dropout(weights, 0.5, true, generator);
  Tensor total = zeros({6, 6});
  constexpr int kDraws = 10000;
  for (int draw = 0; draw < kDraws; ++draw) total = total + dropout(weights, 0.5, true, generator);
  return heat_maps_svg(
      {words_map("weights [6, 6]", weights), words_map("one draw, p = 0.5", one),
       words_map("mean of 10000 draws", total / kDraws)},
      "Attention weights, the same after dropout with p = 0.5 (about half are 0 and the others doubled), and the "
      "mean of many such draws, which is what was there before.");
}

std::string out_proj_picture() {
  Generator generator(123);
  const attention::MultiHeadAttention mha(3, /*d_out=*/4, 6, 0.0, /*num_heads=*/2, false, generator);
  const Labels results = {"result 1", "result 2", "result 3", "result 4"}, features = {"head 1", "head 1", "head 2", "head 2"};
  return heat_maps_svg(
      {{.title = "without it", .values = eye(4), .rows = results, .columns = features},
       {.title = "out_proj.weight [4, 4]", .values = mha.out_proj.weight.detach(), .rows = results, .columns = features}},
      "Which features of which head each feature of the result depends on: without out_proj one of one head, with "
      "it all of both.");
}

std::string masked_row_picture() {
  const Labels words(kWords.begin(), kWords.begin() + 4);
  const Tensor scores = scores_789().slice(0, 0, 4).slice(1, 0, 4).clone();
  // Word 1 is padding, masked for every query; its own row, whose later keys are masked as well, is masked altogether.
  const Tensor mask = logical_or(causal_mask(4), eq(arange(4), 0));
  const Tensor masked = scores.masked_fill(mask, -kInfinity) / std::sqrt(2);
  const auto map = [&](const std::string& title, const Tensor& values) {
    return HeatMap{.title = title, .values = values, .rows = words, .columns = words};
  };
  return heat_maps_svg({map("scores", masked), map("softmax", softmax(masked, -1)),
                        map("masked_attention_weights", masked_attention_weights(scores, mask, /*d_k=*/2))},
                       "Scores whose first row is masked altogether, the NaN that softmax makes of it, and the zeros that the "
                       "attention modules use.");
}

}  // namespace

std::vector<Picture> pictures() {
  const NoGradGuard no_grad;
  return {{"weights", weights_picture()},   {"scaling", scaling_picture()},
          {"heads", heads_picture()},       {"causal", causal_picture()},
          {"mask", mask_picture()},         {"dropout", dropout_picture()},
          {"out_proj", out_proj_picture()}, {"masked_row", masked_row_picture()}};
}

}  // namespace onestep::book
