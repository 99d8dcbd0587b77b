#pragma once
// Kind `instructions`: conversations whose answers are learned.
#include <memory>
#include <string>
#include <vector>

#include "train/data/data.h"
#include "train/data/examples.h"
#include "train/text/chat_template.h"

namespace onestep::train {

/// What was said: a message and its answer at a time.
struct Dialogue {
  struct Turn {
    std::string message, answer;
  };
  std::string system = {};
  std::vector<Turn> turns = {};
  std::string place = {};  ///< `FILE: line 12`
};

/// The conversations of a JSONL file. A line is an object with a prompt (or instruction, with or without an input; or question)
/// and an answer (or response, completion, output), and perhaps a system message; or with messages [{"role", "content"}], user
/// and assistant in turn, perhaps after system. Other keys are not read. Throws IoError, and ConfigError naming file and line.
std::vector<Dialogue> read_dialogues(const std::string& file);

/// A conversation as `chat` has the model read it; targets are the answers and what ends them, all others kIgnoreIndex.
/// Throws EncodeError.
Example encode_dialogue(const Dialogue& dialogue, const ChatTemplate& chat, const Tokenizer& tokenizer);

/// The data of a resolved config of kind instructions, read with `tokenizer` or, where it is null, one made of the text. Throws
/// ConfigError and IoError.
std::unique_ptr<Data> make_instruction_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet);

}  // namespace onestep::train
