#include "train/text/chat_template.h"

#include <utility>

#include "base/format.h"
#include "base/suggest.h"
#include "base/utf8.h"

namespace onestep::train {
namespace {

/// A named template, and a mark that a tokenizer made for it has as one token (empty: none).
struct Named {
  std::string name, mark;
  ChatTemplate chat;
};

const std::vector<Named>& named_templates() {
  static const std::vector<Named> all = {
      {"plain", "", {.before_user = "User: ", .before_answer = "\nAssistant:", .after_answer = "\n", .answer_prefix = " "}},
      {"chatml",
       "<|im_start|>",
       {.before_system = "<|im_start|>system\n",
        .after_system = "<|im_end|>\n",
        .before_user = "<|im_start|>user\n",
        .before_answer = "<|im_end|>\n<|im_start|>assistant\n",
        .after_answer = "<|im_end|>\n"}},
      {"llama3",
       "<|start_header_id|>",
       {.begin = "<|begin_of_text|>",
        .before_system = "<|start_header_id|>system<|end_header_id|>\n\n",
        .after_system = "<|eot_id|>",
        .before_user = "<|start_header_id|>user<|end_header_id|>\n\n",
        .before_answer = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        .after_answer = "<|eot_id|>"}},
      {"none", "", {}},
  };
  return all;
}

std::string with_new_lines(std::string text) {
  for (size_t at = 0; (at = text.find("\\n", at)) != std::string::npos; ++at) text.replace(at, 2, 1, '\n');
  return text;
}

bool has_token(const Tokenizer& tokenizer, const std::string& mark) {
  try {
    return tokenizer.encode(mark).size() == 1;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

std::string ChatTemplate::stop() const {
  const auto trimmed = [](const std::string& text) { return text.substr(0, text.find_last_not_of(" \t\n") + 1); };
  const std::string mark = trimmed(after_answer);
  return mark.empty() ? trimmed(after_answer + before_user) : mark;
}

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const Named& each : named_templates()) names.push_back(each.name);
  return names;
}

ChatTemplate make_chat_template(std::string_view name_or_text) {
  for (const Named& each : named_templates())
    if (each.name == name_or_text) return each.chat;
  const std::string text = with_new_lines(std::string(name_or_text)), user_mark = "{user}", answer_mark = "{answer}";
  const size_t user = text.find(user_mark), answer = text.find(answer_mark);
  const std::string meant = nearest(name_or_text, chat_template_names());
  ONESTEP_CHECK(ConfigError, user != std::string::npos && answer != std::string::npos && user < answer,
                "chat template: must be ", join(chat_template_names(), ", "), ", or a text with {user} and then {answer}: got ",
                quote(name_or_text), did_you_mean(meant));
  const size_t behind_user = user + user_mark.size();
  return {.before_user = text.substr(0, user),
          .before_answer = text.substr(behind_user, answer - behind_user),
          .after_answer = text.substr(answer + answer_mark.size())};
}

std::string find_chat_template(const Tokenizer& tokenizer) {
  for (const Named& each : named_templates())
    if (!each.mark.empty() && has_token(tokenizer, each.mark)) return each.name;
  return "plain";
}

}  // namespace onestep::train
