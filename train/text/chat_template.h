#pragma once
// How the messages of a conversation are written as one text.
#include <string>
#include <string_view>
#include <vector>

#include "train/text/tokenizer.h"

namespace onestep::train {

/// A conversation is `begin`, the system message if there is one, and for each message and its answer
/// `before_user` MESSAGE `before_answer` ANSWER `after_answer`.
struct ChatTemplate {
  std::string begin = {};
  std::string before_system = {}, after_system = "\n";
  std::string before_user = {}, before_answer = {}, after_answer = {};
  std::string answer_prefix = {};  ///< With which answers that are learned begin: the model writes it.

  /// The text at which an answer ends: after_answer, with the beginning of the next message where that is white space alone.
  /// Empty where nothing tells an answer from a message.
  std::string stop() const;
};

/// plain (`User: ...` and `Assistant: ...` on lines), chatml, llama3, none (messages and answers as they stand).
std::vector<std::string> chat_template_names();

/// The template of a name, or that which a text with {user} and then {answer} describes, in which \n is a new line. Throws
/// ConfigError.
ChatTemplate make_chat_template(std::string_view name_or_text);

/// The name of the template whose marks the tokenizer has as tokens, else `plain`.
std::string find_chat_template(const Tokenizer& tokenizer);

}  // namespace onestep::train
