#pragma once
// Messages and answers: a text that a model and somebody else write in turn.
#include <functional>
#include <string>
#include <vector>

#include "train/models/generate.h"
#include "train/text/chat_template.h"
#include "train/text/stopping_text.h"

namespace onestep::train {

struct ConversationOptions {
  ChatTemplate chat = {};
  std::string system = {};        ///< What the model is told before the first message; empty: nothing.
  GenerateOptions generate = {};  ///< Of an answer.
  Stops stops = {};               ///< Of an answer, beside those of the template.
};

/// What came of a message.
struct Answer {
  std::string text;
  bool stopped = false;   ///< The model ended it, not the number of tokens or `interrupted`.
  int64_t forgotten = 0;  ///< How many of the oldest messages were forgotten for it, with their answers.
};

/// Keeps what was said, and what the model remembers of it, so that only what is new is read for the next answer.
class Conversation {
 public:
  /// All must outlive it. Throws ConfigError where the tokenizer has no ids for the template or the system message.
  Conversation(LanguageModel& model, const Tokenizer& tokenizer, ConversationOptions options, Generator& generator);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// The model's answer to a message; `on_text` gets it piece by piece, and it ends after the token at which `interrupted` says
  /// so. Where all that was said does not fit into the context, and half of it or the tokens of an answer, the oldest
  /// messages are forgotten. Throws ConfigError where the tokenizer has no ids for the message, which was not said then, and
  /// DivergedError.
  Answer say(const std::string& message, const std::function<void(const std::string&)>& on_text = {},
             const std::function<bool()>& interrupted = {});
  /// All that was said, as the model reads it.
  std::vector<int64_t> ids() const;

 private:
  int64_t make_room();
  void close_turn(std::vector<int64_t> generated, const Answer& answer);

  LanguageModel& model_;
  const Tokenizer& tokenizer_;
  ConversationOptions options_;
  Generator& generator_;
  std::vector<int64_t> head_;                // begin and system message
  std::vector<std::vector<int64_t>> turns_;  // a message and its answer each
  TextMemory memory_;                        // of a beginning of ids()
};

}  // namespace onestep::train
