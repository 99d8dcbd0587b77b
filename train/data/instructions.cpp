#include "train/data/instructions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/format.h"
#include "base/json_reader.h"
#include "train/data/records.h"
#include "train/data/text_source.h"

namespace onestep::train {
namespace {

using nlohmann::json;

/// The text of the first of these keys that the object has; empty where there is none.
std::string text_of(const json& object, const std::vector<std::string>& keys, const std::string& place) {
  for (const std::string& key : keys) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) continue;
    ONESTEP_CHECK(ConfigError, found->is_string(), place, ": ", json_pointer("", key), ": must be a text: got ", brief(*found));
    return found->get<std::string>();
  }
  return "";
}

/// As text_of, for what must be there and not be empty.
std::string needed_text(const json& object, const std::vector<std::string>& keys, const std::string& place) {
  const std::string text = text_of(object, keys, place);
  ONESTEP_CHECK(ConfigError, !text.empty(), place, ": must have a text that is not empty in ", join(keys, " or "));
  return text;
}

Dialogue from_messages(const json& messages, const std::string& place) {
  Dialogue dialogue;
  ONESTEP_CHECK(ConfigError, messages.is_array(), place, ": /messages: must be a list: got ", brief(messages));
  bool asked = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = place + ": /messages/" + std::to_string(i);
    ONESTEP_CHECK(ConfigError, messages[i].is_object(), where, ": must be an object: got ", brief(messages[i]));
    const std::string role = needed_text(messages[i], {"role"}, where), content = needed_text(messages[i], {"content"}, where);
    if (role == "system" && i == 0) {
      dialogue.system = content;
      continue;
    }
    ONESTEP_CHECK(ConfigError, role == (asked ? "assistant" : "user"), where, ": /role: must be ", asked ? "assistant" : "user",
                  i == 0 ? " or system" : "", ": got ", role);
    if (asked)
      dialogue.turns.back().answer = content;
    else
      dialogue.turns.push_back({content, ""});
    asked = !asked;
  }
  ONESTEP_CHECK(ConfigError, !dialogue.turns.empty() && !asked, place, ": /messages: must end with an answer of assistant");
  return dialogue;
}

Dialogue parse_dialogue(const json& object, const std::string& place) {
  ONESTEP_CHECK(ConfigError, object.is_object(), place, ": must be an object: got ", brief(object));
  if (const auto messages = object.find("messages"); messages != object.end()) return from_messages(*messages, place);
  std::string message = needed_text(object, {"prompt", "instruction", "question"}, place);
  if (const std::string input = text_of(object, {"input"}, place); !input.empty()) message += "\n\n" + input;
  return {.system = text_of(object, {"system"}, place),
          .turns = {{message, needed_text(object, {"answer", "response", "completion", "output"}, place)}}};
}

/// What comes before the first message.
std::string head_of(const Dialogue& dialogue, const ChatTemplate& chat) {
  return chat.begin + (dialogue.system.empty() ? "" : chat.before_system + dialogue.system + chat.after_system);
}

/// What a stop text has after after_answer: the beginning of the next message, where that tells it from an answer.
std::string stop_behind_answer(const ChatTemplate& chat) {
  const std::string stop = chat.stop();
  return stop.starts_with(chat.after_answer) ? stop.substr(chat.after_answer.size()) : "";
}

/// All of a conversation's text, for a vocabulary.
std::string text_of(const Dialogue& dialogue, const ChatTemplate& chat) {
  std::string text = head_of(dialogue, chat);
  for (const auto& [message, answer] : dialogue.turns)
    text += chat.before_user + message + chat.before_answer + chat.answer_prefix + answer + chat.after_answer;
  return text + stop_behind_answer(chat);
}

/// Conversations in windows, and the template with which they are written.
class InstructionData : public ExampleData {
 public:
  InstructionData(const Config& config, ExampleSet examples, std::shared_ptr<const Tokenizer> tokenizer,
                  std::string chat_template)
      : ExampleData(config, std::move(examples), std::move(tokenizer), /*packed=*/true, config.model.context_length),
        template_(std::move(chat_template)) {}
  void complete(DataConfig& data) const override { data.chat_template = template_; }

 private:
  std::string template_;
};

/// The ids of a conversation and which of them the model is to predict.
struct Spans {
  void add(const std::vector<int64_t>& more, bool counts) {
    ids.insert(ids.end(), more.begin(), more.end());
    counted.insert(counted.end(), more.size(), counts);
  }
  std::vector<int64_t> ids;
  std::vector<bool> counted;
};

}  // namespace

std::vector<Dialogue> read_dialogues(const std::string& file) {
  std::vector<Dialogue> dialogues;
  for_each_json_line(file, [&](const json& value, const std::string& place) {
    dialogues.push_back(parse_dialogue(value, place));
    dialogues.back().place = place;
  });
  return dialogues;
}

Example encode_dialogue(const Dialogue& dialogue, const ChatTemplate& chat, const Tokenizer& tokenizer) {
  const std::string head = head_of(dialogue, chat), mark = stop_behind_answer(chat);
  Spans all;
  all.add(chat.begin.empty() ? tokenizer.encode_prompt(head) : tokenizer.encode(head), false);
  const std::vector<int64_t> mark_ids = tokenizer.encode(mark);
  for (size_t i = 0; i < dialogue.turns.size(); ++i) {
    const auto& [message, answer] = dialogue.turns[i];
    const std::vector<int64_t> opening = tokenizer.encode(chat.before_user + message + chat.before_answer);
    const size_t before = all.ids.size();
    all.add(opening, false);
    // The answer before this message ends with the beginning of it, which the model therefore has to write.
    const bool begins =
        std::ssize(opening) >= std::ssize(mark_ids) && std::equal(mark_ids.begin(), mark_ids.end(), opening.begin());
    if (i > 0 && begins) std::fill_n(all.counted.begin() + static_cast<std::ptrdiff_t>(before), mark_ids.size(), true);
    all.add(tokenizer.encode(chat.answer_prefix + answer + chat.after_answer), true);
  }
  all.add(mark_ids, true);
  Example example;
  example.inputs.assign(all.ids.begin(), all.ids.end() - 1);
  for (size_t i = 1; i < all.ids.size(); ++i) example.targets.push_back(all.counted[i] ? all.ids[i] : kIgnoreIndex);
  return example;
}

std::unique_ptr<Data> make_instruction_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet) {
  const auto train = read_all(text_files(config), read_dialogues);
  const auto validation = read_all(validation_files(config), read_dialogues);
  std::string name = config.data.chat_template;
  if (name.empty()) name = tokenizer ? find_chat_template(*tokenizer) : "plain";
  ChatTemplate chat;
  try {
    chat = make_chat_template(name);
  } catch (const ConfigError& error) {
    fail<ConfigError>(config.origin.at("/data/template"), ": ", error.what());
  }
  if (!tokenizer) {
    std::string text;
    for (const std::vector<Dialogue>* const part : {&train, &validation})
      for (const Dialogue& dialogue : *part) text += text_of(dialogue, chat);
    tokenizer = make_tokenizer(config.data.tokenizer, text);
  }
  CutExamples cut;
  const auto encode = [&](const std::vector<Dialogue>& dialogues) {
    std::vector<Example> examples;
    for (const Dialogue& dialogue : dialogues) {
      Example example = at_place(dialogue.place, [&] { return encode_dialogue(dialogue, chat, *tokenizer); });
      const bool is_long = cut_to(example, config.model.context_length);
      const bool counts =
          std::any_of(example.targets.begin(), example.targets.end(), [](int64_t id) { return id != kIgnoreIndex; });
      ++cut.all;
      cut.cut += is_long && counts;
      cut.left_out += !counts;
      example.key = text_of(dialogue, chat);
      if (counts) examples.push_back(std::move(example));
    }
    return examples;
  };
  ExampleSet set{encode(train), encode(validation)};
  cut.say("conversations", config.model.context_length, quiet);
  ONESTEP_CHECK(ConfigError, !set.train.empty() && (config.data.val_path.empty() || !set.held_out.empty()),
                config.origin.at("/data"),
                ": no conversation of which an answer fits into model.context_length = ", config.model.context_length);
  if (config.data.val_path.empty()) set = hold_out(std::move(set.train), config);
  return std::make_unique<InstructionData>(config, std::move(set), tokenizer, name);
}

}  // namespace onestep::train
