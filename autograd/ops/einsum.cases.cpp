#include <map>

#include "autograd/ops/naive.h"

namespace onestep {
namespace {

/// The sum over all values of all letters, one product at a time. Every dim has a letter of its own here: no ellipsis, and
/// the result is given.
Values naive_einsum(const std::vector<std::string>& inputs, const std::string& output, const std::vector<Values>& in) {
  std::map<char, int64_t> sizes, at;
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t d = 0; d < inputs[i].size(); ++d) {
      int64_t& size = sizes[inputs[i][d]];
      const int64_t own = in[i].shape[static_cast<int>(d)];
      size = own == 1 && size > 0 ? size : own;
    }
  const auto place = [&](const std::string& dims, const Shape& shape) {
    naive::Place p{};
    for (size_t d = 0; d < dims.size(); ++d) p[d] = shape[static_cast<int>(d)] == 1 ? 0 : at[dims[d]];
    return naive::number_of(shape, p);
  };
  Shape shape;
  for (const char c : output) shape.push_back(sizes[c]);
  Values y(shape);
  int64_t total = 1;
  for (const auto& [_, size] : sizes) total *= size;
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n;
    for (const auto& [c, size] : sizes) {
      at[c] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (size_t i = 0; i < in.size(); ++i) product *= in[i][place(inputs[i], in[i].shape)];
    y[place(output, shape)] += product;
  }
  return y;
}

/// `inputs` and `output` spell out what the equation leaves to the rules.
OpSample sample_of(const std::string& label, const std::string& equation, const std::vector<Shape>& shapes,
                   const std::vector<std::string>& inputs, const std::string& output) {
  OpSample sample{label,
                  {},
                  [equation](const std::vector<Tensor>& in) { return einsum(equation, in); },
                  [=](const std::vector<Values>& in) { return naive_einsum(inputs, output, in); }};
  for (const Shape& shape : shapes) sample.inputs.push_back({shape});
  return sample;
}

const RegisterOpCases registered([] {
  return OpCases{
      {"einsum",
       joined({sample_of("matrix product", "ij,jk->ik", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik"),
               sample_of("attention scores", "bthd,bshd->bhts", {{2, 3, 2, 4}, {2, 5, 2, 4}}, {"bthd", "bshd"}, "bhts"),
               sample_of("projection into heads", "...td,hkd->...htk", {{2, 3, 4}, {2, 3, 4}}, {"btd", "hkd"}, "bhtk"),
               sample_of("sum over two dims", "bhtk,ohk->bto", {{2, 2, 3, 4}, {5, 2, 4}}, {"bhtk", "ohk"}, "bto"),
               sample_of("outer product", "i,j->ij", {{3}, {4}}, {"i", "j"}, "ij"),
               sample_of("dot product", "i,i->", {{4}, {4}}, {"i", "i"}, ""),
               sample_of("implied result", "bA,bc", {{2, 3}, {2, 4}}, {"bA", "bc"}, "Ac"),
               sample_of("implied result with an ellipsis", "...ij,...j", {{2, 1, 2, 3}, {4, 3}}, {"xyij", "yj"}, "xyi"),
               sample_of("a dim that comes back later", "i,j,ij->", {{2}, {3}, {2, 3}}, {"i", "j", "ij"}, ""),
               sample_of("size 1 repeats in the result", "bij,bjk->bik", {{1, 2, 3}, {4, 3, 2}}, {"bij", "bjk"}, "bik"),
               sample_of("diagonal", "ii->i", {{3, 3}}, {"ii"}, "i"),
               sample_of("trace", "ii", {{3, 3}}, {"ii"}, ""),
               sample_of("diagonals in front", "iaib->iab", {{3, 2, 3, 2}}, {"iaib"}, "iab"),
               sample_of("two diagonals", "abab->ba", {{2, 3, 2, 3}}, {"abab"}, "ba"),
               sample_of("three times the same", "iii->i", {{3, 3, 3}}, {"iii"}, "i"),
               sample_of("transpose", "ij->ji", {{2, 3}}, {"ij"}, "ji"),
               sample_of("sum of all", "ij->", {{2, 3}}, {"ij"}, ""),
               sample_of("an ellipsis that the result lacks", "...i->i", {{2, 3, 4}}, {"xyi"}, "i"),
               sample_of("spaces", " i j , j k -> i k ", {{2, 3}, {3, 2}}, {"ij", "jk"}, "ik"),
               sample_of("five common dims", "abcdei,abcdei->abcde", {{1, 2, 1, 2, 2, 3}, {1, 2, 1, 2, 2, 3}},
                         {"abcdei", "abcdei"}, "abcde"),
               sample_of("rank 0", ",i->i", {{}, {3}}, {"", "i"}, "i"),
               sample_of("nothing to sum", "ij,jk->ik", {{2, 0}, {0, 3}}, {"ij", "jk"}, "ik"),
               sample_of("no rows", "bij,bjk->bik", {{2, 0, 3}, {2, 3, 4}}, {"bij", "bjk"}, "bik")},
              without(&OpSample::rounds_once,
                      {sample_of("three operands", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}, {"ij", "jk", "kl"}, "il"),
                       sample_of("a dim that is summed at once", "ijx,jky->ik", {{2, 3, 2}, {3, 4, 2}}, {"ijx", "jky"}, "ik"),
                       sample_of("size 1 repeats", "ij,jk->ik", {{2, 1}, {3, 4}}, {"ij", "jk"}, "ik")})),
       {{"operands",
         [] {
           einsum("ij,jk", {zeros({2, 3})});
         },
         "einsum: \"ij,jk\" names 2 operands: got 1"},
        {"character",
         [] {
           einsum("i1", {zeros({2, 3})});
         },
         "einsum: '1' in \"i1\" is no subscript (letters, at most one ... a term, commas and one ->)"},
        {"two ellipses",
         [] {
           einsum("......i", {zeros({2, 3})});
         },
         "einsum: '.' in \"......i\" is no subscript (letters, at most one ... a term, commas and one ->)"},
        {"two arrows", [] { einsum("i->i->i", {zeros(2)}); },
         "einsum: '-' in \"i->i->i\" is no subscript (letters, at most one ... a term, commas and one ->)"},
        {"rank",
         [] {
           einsum("ijk", {zeros({2, 3})});
         },
         "einsum: \"ijk\" names 3 dims of an operand of shape [2, 3]"},
        {"ellipsis with too many letters",
         [] {
           einsum("...ijk", {zeros({2, 3})});
         },
         "einsum: \"...ijk\" names 3 dims of an operand of shape [2, 3]"},
        {"sizes",
         [] {
           einsum("ij,jk", {zeros({2, 3}), zeros({4, 5})});
         },
         "einsum: \"ij,jk\": dim j has sizes 3 and 4"},
        {"diagonal",
         [] {
           einsum("ii", {zeros({1, 3})});
         },
         "einsum: \"ii\": dim i has sizes 1 and 3"},
        {"unknown dim", [] { einsum("i->ij", {zeros(2)}); }, "einsum: \"i->ij\": dim j of the result is in no operand"},
        {"dim twice",
         [] {
           einsum("ij->ii", {zeros({2, 3})});
         },
         "einsum: \"ij->ii\": dim i is twice in the result"},
        {"bool", [] { einsum("i->", {zeros(2, DType::boolean)}); }, "einsum: does not take bool (convert with to())"},
        {"dtypes",
         [] {
           einsum("i,i", {zeros(2), zeros(2, DType::float64)});
         },
         "einsum: ", is_a<DTypeError>}}}};
});

}  // namespace
}  // namespace onestep
