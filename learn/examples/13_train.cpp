// Training: a language model around the causal attention of section 3.5, trained to say the sentence.
//
// Words become vectors (token and position embeddings), attention combines them, and a last layer gives a logit for each word
// of the vocabulary. The loss is low when the next word has the largest one.
#include <onestep/onestep.h>

#include <iostream>
#include <string>
using namespace onestep;

class SentenceModel : public nn::Module {
 public:
  SentenceModel(int64_t vocab_size, int64_t context_length, int64_t d, Generator& generator)
      : words(vocab_size, d, generator),
        positions(context_length, d, generator),
        attention(d, d, context_length, /*dropout=*/0.0, /*num_heads=*/2, /*qkv_bias=*/false, generator),
        head(d, vocab_size, /*bias=*/true, generator) {}

  std::string name() const override { return "SentenceModel"; }
  void visit(nn::Visitor& visitor) override {
    visitor.child("words", words);
    visitor.child("positions", positions);
    visitor.child("attention", attention);
    visitor.child("head", head);
  }
  Tensor embed(const Tensor& ids) const { return words(ids) + positions(arange(ids.size(0))); }  // [T] -> [T, d]
  Tensor forward(const Tensor& ids) const { return head(attention(embed(ids))); }                // [T] -> [T, V]

  nn::Embedding words, positions;
  onestep::attention::MultiHeadAttention attention;
  nn::Linear head;
};

int main() {
  const std::string vocabulary[] = {"Your", "journey", "starts", "with", "one", "step"};
  const Tensor ids = arange(6);              // the sentence
  const Tensor input = ids.slice(0, 0, 5);   // Your journey starts with one
  const Tensor target = ids.slice(0, 1, 6);  //      journey starts with one step

  Generator generator(123);
  SentenceModel model(/*vocab_size=*/6, /*context_length=*/6, /*d=*/8, generator);
  std::cout << model.num_parameters() << " parameters\n\n";

  optim::Adam adam(model.parameters(), {.lr = 0.02});
  for (int step = 0; step <= 60; ++step) {
    const Tensor loss = cross_entropy(model.forward(input), target);
    if (step % 10 == 0) std::cout << "step " << step << ": loss " << loss.item() << '\n';
    adam.zero_grad();
    loss.backward();
    adam.step();
  }

  std::cout << "\nsays: Your";
  Tensor generated = ids.slice(0, 0, 1);
  while (generated.size(0) < 6) {
    const Tensor next = argmax(model.forward(generated), -1).slice(0, -1, generated.size(0));  // of the last position
    std::cout << ' ' << vocabulary[next.item<int64_t>()];
    generated = cat({generated, next});
  }

  // What each word attends to most: the word with the largest weight, head by head.
  const Tensor weights = model.attention.forward_with_weights(model.embed(input)).weights;  // [H, T, T]
  for (int64_t head = 0; head < 2; ++head) {
    const ValuesIndices attended = max(weights[head], -1);  // over itself and the words before it
    std::cout << (head == 0 ? "\n\n" : "\n") << "head " << head << ":";
    for (int64_t t = 0; t < 5; ++t)
      std::cout << ' ' << vocabulary[t] << "->" << vocabulary[attended.indices[t].item<int64_t>()];
  }
  std::cout << '\n';
}
