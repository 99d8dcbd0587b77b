#include "train/models/conversation.h"

#include <algorithm>
#include <utility>

namespace onestep::train {

Conversation::Conversation(LanguageModel& model, const Tokenizer& tokenizer, ConversationOptions options, Generator& generator)
    : model_(model), tokenizer_(tokenizer), options_(std::move(options)), generator_(generator) {
  const ChatTemplate& chat = options_.chat;
  const std::string system = options_.system.empty() ? "" : chat.before_system + options_.system + chat.after_system;
  head_ = chat.begin.empty() ? tokenizer.encode_prompt(system) : tokenizer.encode(chat.begin + system);
  tokenizer.encode(chat.before_user + chat.before_answer + chat.after_answer);  // refused here, not at the first message
  if (const std::string stop = chat.stop(); !stop.empty()) options_.stops.strings.push_back(stop);
}

std::vector<int64_t> Conversation::ids() const {
  std::vector<int64_t> all = head_;
  for (const auto& turn : turns_) all.insert(all.end(), turn.begin(), turn.end());
  return all;
}

/// Forgets the oldest turns, but not the last, until an answer fits into the context; returns how many.
int64_t Conversation::make_room() {
  const int64_t context = model_.context_length();
  const int64_t most = context - std::min(options_.generate.tokens, context / 2);
  auto length = std::ssize(head_);
  for (const auto& turn : turns_) length += std::ssize(turn);
  int64_t forgotten = 0;
  for (; length > most && forgotten + 1 < std::ssize(turns_); ++forgotten)
    length -= std::ssize(turns_[static_cast<size_t>(forgotten)]);
  if (forgotten > 0) memory_ = {};
  turns_.erase(turns_.begin(), turns_.begin() + forgotten);
  return forgotten;
}

Answer Conversation::say(const std::string& message, const std::function<void(const std::string&)>& on_text,
                         const std::function<bool()>& interrupted) {
  std::vector<int64_t> opening = tokenizer_.encode(options_.chat.before_user + message + options_.chat.before_answer);
  ONESTEP_CHECK(ConfigError, !opening.empty(), "chat: the message is empty");
  turns_.push_back(std::move(opening));
  Answer answer{.text = {}, .forgotten = make_room()};
  const std::vector<int64_t> said = ids();
  StoppingText text(&tokenizer_, options_.stops);
  for (const int64_t id : said) text.follow(id);
  const auto show = [&](const std::string& piece) {
    answer.text += piece;
    if (on_text) on_text(piece);
  };
  const auto ends = [&](int64_t token) {
    show(text.add(token));
    return text.stopped() || (interrupted && interrupted());
  };
  const Prompt prompt{.ids = said, .generator = &generator_, .ends = ends, .memory = &memory_};
  const Generated generated = generate(model_, std::span(&prompt, 1), options_.generate)[0];
  show(text.finish());
  answer.stopped = text.stopped();
  close_turn(generated.ids, answer);
  return answer;
}

/// Appends answer and after_answer to the turn: the generated ids as far as the model has read them, where they are the
/// beginning of that text. A model may have begun the stop in other tokens than the template's: then all is read again.
void Conversation::close_turn(std::vector<int64_t> generated, const Answer& answer) {
  std::vector<int64_t>& turn = turns_.back();
  const std::string whole = answer.text + options_.chat.after_answer;
  if (answer.stopped) generated.pop_back();  // with which the stop was whole; the model has not read it
  StreamDecoder decoded(&tokenizer_);
  for (const int64_t id : turn) decoded.add(id);
  std::string text;
  for (const int64_t id : generated) text += decoded.add(id);
  const bool goes_on = whole.starts_with(text) && decoded.finish().empty();
  if (!goes_on) memory_ = {};
  const std::vector<int64_t> rest = tokenizer_.encode(goes_on ? whole.substr(text.size()) : whole);
  if (goes_on) turn.insert(turn.end(), generated.begin(), generated.end());
  turn.insert(turn.end(), rest.begin(), rest.end());
}

}  // namespace onestep::train
