// Conversations: the model reads what was said, once, and each answer is what it would be if all were read again.
#include "train/models/conversation.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "autograd/creation.h"
#include "autograd/operators.h"
#include "autograd/ops_math.h"
#include "tests/support.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;

namespace {

using Ids = std::vector<int64_t>;

/// A small GPT with random weights over a few characters.
struct Fixture {
  explicit Fixture(int64_t context)
      : tokenizer(make_tokenizer(TokenizerKind::characters, "abcdefgh:{}\n")),
        generator(4),
        model(make_language_model(
            {.kind = ModelKind::gpt, .d_model = 16, .num_heads = 2, .context_length = context, .num_layers = 2, .d_ff = 64},
            tokenizer->vocab_size(), generator)) {
    const NoGradGuard no_grad;
    for (Tensor parameter : model->parameters()) copy_(parameter, randn(parameter.shape(), generator) * 0.4);
  }

  std::unique_ptr<Tokenizer> tokenizer;
  Generator generator;
  std::unique_ptr<LanguageModel> model;
};

const ChatTemplate kTurns = {.before_user = "a:", .before_answer = "\nb:", .after_answer = "\n"};

/// The answer to `ids`, read from the beginning.
std::string answer_anew(Fixture& fixture, const Ids& ids, const ConversationOptions& options, Generator& generator) {
  const Generated made = generate(*fixture.model, ids, options.generate, generator);
  return fixture.tokenizer->decode(made.ids);
}

}  // namespace

TEST_CASE("conversation: each answer is that of all that was said, read again") {
  Fixture fixture(400);
  const ConversationOptions options{.chat = kTurns, .system = "hhh", .generate = {.tokens = 12}};
  Generator draws(1), same(1);
  Conversation conversation(*fixture.model, *fixture.tokenizer, options, draws);
  std::string text = "hhh\n";
  for (const std::string message : {"cd", "e", "ffa", "g", "dd"}) {
    text += "a:" + message + "\nb:";
    std::string wanted = answer_anew(fixture, fixture.tokenizer->encode(text), options, same);
    // It may stop earlier, at the next message: then the draws differ from here on.
    const size_t stop = wanted.find("\na:");
    std::string heard;
    const Answer answer = conversation.say(message, [&](const std::string& piece) { heard += piece; });
    CHECK(answer.text == wanted.substr(0, stop));
    CHECK(heard == answer.text);
    CHECK(answer.stopped == (stop != std::string::npos));
    CHECK(answer.forgotten == 0);
    text += answer.text + "\n";
    CHECK(fixture.tokenizer->decode(conversation.ids()) == text);
    if (answer.stopped) same = draws;
  }
}

TEST_CASE("conversation: an answer ends at the template's mark, and the next one is as if it had been written") {
  Fixture fixture(400);
  Generator draws(1), same(1);
  const Ids opening = fixture.tokenizer->encode("a:cd\nb:");
  const Generated free = generate(*fixture.model, opening, {.tokens = 20, .sampling = {.temperature = 0}}, same);
  const std::string text = fixture.tokenizer->decode(free.ids);
  // Marks of one, two and three characters that come somewhere in the greedy answer, and what may follow them.
  for (const size_t length : {1u, 2u, 3u}) {
    const std::string mark = text.substr(4, length);
    if (mark.find('\n') != std::string::npos) continue;
    for (const std::string behind : {"", "\n", "gg"}) {
      ConversationOptions options{.chat = kTurns, .generate = {.tokens = 20, .sampling = {.temperature = 0}}};
      options.chat.after_answer = mark + behind;
      Conversation conversation(*fixture.model, *fixture.tokenizer, options, draws);
      const std::string stop = options.chat.stop();
      const Answer first = conversation.say("cd");
      CHECK(first.text == text.substr(0, text.find(stop)));
      CHECK(first.stopped == (text.find(stop) != std::string::npos));
      std::string said = "a:cd\nb:" + first.text + mark + behind;
      CHECK(fixture.tokenizer->decode(conversation.ids()) == said);
      said += "a:e\nb:";
      const std::string second = answer_anew(fixture, fixture.tokenizer->encode(said), options, same);
      CHECK(conversation.say("e").text == second.substr(0, second.find(stop)));
    }
  }
}

TEST_CASE("conversation: what interrupts an answer keeps what was said of it") {
  Fixture fixture(400);
  const ConversationOptions options{.chat = kTurns, .generate = {.tokens = 1000000, .sampling = {.temperature = 0}}};
  Generator draws(1), same(1);
  Conversation conversation(*fixture.model, *fixture.tokenizer, options, draws);
  int64_t asked = 0;
  const Answer answer = conversation.say("cd", {}, [&] { return ++asked == 7; });
  CHECK(answer.text.size() == 7);
  CHECK_FALSE(answer.stopped);
  const std::string said = "a:cd\nb:" + answer.text + "\n";
  CHECK(fixture.tokenizer->decode(conversation.ids()) == said);
  asked = 0;
  const Generated again = generate(*fixture.model, fixture.tokenizer->encode(said + "a:e\nb:"),
                                   {.tokens = 7, .sampling = {.temperature = 0}}, same);
  CHECK(conversation.say("e", {}, [&] { return ++asked == 7; }).text == fixture.tokenizer->decode(again.ids));
}

TEST_CASE("conversation: the oldest messages are forgotten when the context is full, the system message never") {
  Fixture fixture(40);
  const ConversationOptions options{.chat = kTurns, .system = "hh", .generate = {.tokens = 5, .sampling = {.temperature = 0}}};
  Generator draws(1), same(1);
  Conversation conversation(*fixture.model, *fixture.tokenizer, options, draws);
  int64_t forgotten = 0;
  for (int i = 0; i < 8; ++i) {
    const Answer answer = conversation.say("cd");
    forgotten += answer.forgotten;
    const std::string said = fixture.tokenizer->decode(conversation.ids());
    CHECK(said.starts_with("hh\na:cd\nb:"));
    CHECK(said.size() <= 41);  // an answer fits, and what ends it comes after
    CHECK(answer.text == answer_anew(fixture, fixture.tokenizer->encode(said.substr(0, said.rfind("b:") + 2)), options, same)
                             .substr(0, answer.text.size()));
  }
  CHECK(forgotten >= 4);
  // A message that does not fit at all is read from behind, and nothing else is left.
  const Answer answer = conversation.say(std::string(100, 'c'));
  CHECK(answer.forgotten > 0);
  CHECK(fixture.tokenizer->decode(conversation.ids()).starts_with("hh\na:ccc"));
}

TEST_CASE("conversation: a message that has no ids was not said") {
  Fixture fixture(100);
  Generator draws(1);
  const ConversationOptions options{.chat = kTurns, .generate = {.tokens = 3}};
  Conversation conversation(*fixture.model, *fixture.tokenizer, options, draws);
  conversation.say("cd");
  const Ids before = conversation.ids();
  CHECK(refusal<ConfigError>([&] { conversation.say("xyz"); }).starts_with("encode: offset 2: "));
  CHECK(conversation.ids() == before);
  conversation.say("e");
  CHECK(conversation.ids().size() > before.size());
  CHECK_THROWS_AS(Conversation(*fixture.model, *fixture.tokenizer, {.chat = make_chat_template("chatml")}, draws), ConfigError);
  Conversation bare(*fixture.model, *fixture.tokenizer, {.generate = {.tokens = 3}}, draws);
  CHECK(refusal<ConfigError>([&] { bare.say(""); }) == "chat: the message is empty");
}

TEST_CASE("conversation: marks that are tokens of the model end its answers") {
  BpeVocabulary vocabulary = bpe_bytes();
  for (const char* mark : {"<|im_start|>", "<|im_end|>"}) {
    vocabulary.specials.push_back(static_cast<int32_t>(vocabulary.tokens.size()));
    vocabulary.tokens.emplace_back(mark);
  }
  const BpeTokenizer tokenizer(vocabulary);
  const int64_t begin = 256, end = 257;
  CHECK(find_chat_template(tokenizer) == "chatml");
  Generator generator(4), draws(1);
  const auto model = make_language_model({.kind = ModelKind::gpt,
                                          .d_model = 8,
                                          .num_heads = 1,
                                          .context_length = 300,
                                          .num_layers = 1,
                                          .d_ff = 32,
                                          .tie_weights = false},
                                         tokenizer.vocab_size(), generator);
  // Every hidden state is the same: the head alone says that <|im_end|> comes next.
  const NoGradGuard no_grad;
  for (auto& [name, parameter] : model->named_parameters()) {
    if (name == "transformer.ln_f.weight") fill_(parameter, 0);
    if (name == "transformer.ln_f.bias") fill_(parameter, 1);
    if (name == "lm_head.weight") fill_(parameter.slice(0, end, end + 1), 9);
  }
  const ConversationOptions options{.chat = make_chat_template("chatml"), .system = "be brief", .generate = {.tokens = 20}};
  Conversation conversation(*model, tokenizer, options, draws);
  std::string said = "<|im_start|>system\nbe brief<|im_end|>\n";
  for (const std::string message : {"hi", "bye"}) {
    const Answer answer = conversation.say(message);
    CHECK(answer.text == "");
    CHECK(answer.stopped);
    said += "<|im_start|>user\n" + message + "<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n";
    const Ids ids = conversation.ids();
    CHECK(tokenizer.decode(ids) == said);
    CHECK(ids == tokenizer.encode(said));
    CHECK(std::count(ids.begin(), ids.end(), begin) == std::count(ids.begin(), ids.end(), end));
  }
}

TEST_CASE("chat template: names, texts and what they stop at") {
  CHECK(make_chat_template("plain").stop() == "\nUser:");
  CHECK(make_chat_template("chatml").stop() == "<|im_end|>");
  CHECK(make_chat_template("llama3").stop() == "<|eot_id|>");
  CHECK(make_chat_template("none").stop() == "");
  const ChatTemplate own = make_chat_template("Q {user}\\nA {answer}##\\n");
  CHECK(own.before_user == "Q ");
  CHECK(own.before_answer == "\nA ");
  CHECK(own.after_answer == "##\n");
  CHECK(own.stop() == "##");
  for (const char* wrong : {"", "{user}", "{answer} {user}", "chatlm"})
    CHECK(refusal<ConfigError>([&] { make_chat_template(wrong); }).starts_with("chat template: must be "));
  CHECK(refusal<ConfigError>([] { make_chat_template("chatlm"); }).ends_with("(did you mean chatml?)"));
  CHECK(find_chat_template(*make_tokenizer(TokenizerKind::characters, "<|im_start|>")) == "plain");
  CHECK(find_chat_template(ByteTokenizer()) == "plain");
}
