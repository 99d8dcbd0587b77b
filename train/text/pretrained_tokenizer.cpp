#include "train/text/pretrained_tokenizer.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "train/text/byte_symbols.h"
#include "train/text/nfc.h"

namespace onestep::train {
namespace {

constexpr std::string_view kMetaspace = "\u2581";  // ▁

/// Unicode's White_Space.
bool is_space(uint32_t code) {
  return (code >= '\t' && code <= '\r') || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

/// Where the code point begins that ends at `end`.
size_t previous(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u);
  return end;
}

bool space_before(std::string_view text, size_t end) {
  const size_t begin = previous(text, end);
  return utf8_length(text, begin) == end - begin && is_space(code_point(text.substr(begin, end - begin)));
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t at = 0;
  for (size_t found = 0; (found = text.find(from, at)) != std::string_view::npos; at = found + from.size())
    out.append(text, at, found - at).append(to);
  return out.append(text, at);
}

/// The byte of a token <0x4A>, or -1.
int byte_of_token(std::string_view token) {
  const bool written = token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
                       token.substr(3, 2).find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
  int byte = -1;
  if (written) std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return byte;
}

/// What an id is in a decoded text.
std::string decoded(const TokenizerDescription& d, const std::string& token) {
  if (d.byte_level) return bytes_of_symbol(token).value_or(token);
  if (const int byte = byte_of_token(token); d.decodes_bytes && byte >= 0) return {static_cast<char>(byte)};
  return d.decodes_metaspace ? replace_all(token, kMetaspace, " ") : token;
}

/// Where Metaspace's symbol first follows another character; npos if it does not.
size_t metaspace_after_other(std::string_view text) {
  size_t at = 0;
  while (text.substr(at).starts_with(kMetaspace)) at += kMetaspace.size();
  return text.find(kMetaspace, at);
}

}  // namespace

PretrainedTokenizer::PretrainedTokenizer(TokenizerDescription description)
    : description_(std::move(description)),
      merger_([this](std::string_view word, std::vector<int32_t>& symbols) { add_symbols(word, symbols); },
              BpeMerger::Order::one_by_one) {
  const TokenizerDescription& d = description_;
  for (const std::string& split : d.splits) splits_.emplace_back(from_oniguruma(split));
  byte_ids_.fill(-1);
  for (size_t id = 0; id < d.tokens.size(); ++id) {
    const std::string& token = d.tokens[id];
    const auto as_id = static_cast<int32_t>(id);
    decoded_.push_back(decoded(d, token));
    if (token.empty()) continue;
    const auto bytes = d.byte_level ? bytes_of_symbol(token) : std::optional(token);
    if (bytes) ids_.emplace(*bytes, as_id);
    const int byte =
        d.byte_level ? (bytes && bytes->size() == 1 ? static_cast<unsigned char>((*bytes)[0]) : -1) : byte_of_token(token);
    if (byte >= 0) byte_ids_[static_cast<size_t>(byte)] = as_id;
  }
  for (AddedToken token : d.added) {
    decoded_.resize(std::max(decoded_.size(), static_cast<size_t>(token.id) + 1));
    longest_added_ = std::max(longest_added_, token.content.size());
    if (token.normalized) token.content = normalized(token.content, true);
    decoded_[static_cast<size_t>(token.id)] = decoded(d, token.content);
    if (!token.content.empty()) (token.normalized ? normalized_ : added_).add(std::move(token));
  }
  for (const BpeMerge& merge : d.merges) merger_.add(merge.left, merge.right, merge.result);
  spaces_begin_words_ = !d.byte_level && d.splits.empty() && ids_.contains(kMetaspace) &&
                        std::all_of(d.tokens.begin(), d.tokens.end(), [](const std::string& token) {
                          return metaspace_after_other(token) == std::string::npos;  // no merge reaches across it
                        });
}

// ---- added tokens

void PretrainedTokenizer::AddedTokens::add(AddedToken token) {
  by_first_byte[static_cast<unsigned char>(token.content[0])].push_back(list.size());
  list.push_back(std::move(token));
}

/// The first added token from `from` on, the longest where several begin, with the white space that it takes.
PretrainedTokenizer::Match PretrainedTokenizer::next_added(std::string_view text, size_t from, const AddedTokens& added) {
  for (size_t at = from; at < text.size(); ++at) {
    const AddedToken* best = nullptr;
    for (const size_t i : added.by_first_byte[static_cast<unsigned char>(text[at])]) {
      const AddedToken& token = added.list[i];
      if ((best == nullptr || token.content.size() > best->content.size()) && text.substr(at).starts_with(token.content))
        best = &token;
    }
    if (best == nullptr) continue;
    size_t begin = at, end = at + best->content.size();
    while (best->lstrip && begin > from && space_before(text, begin)) begin = previous(text, begin);
    for (size_t length = 0; best->rstrip && end < text.size(); end += length) {
      length = utf8_length(text, end);
      if (length == 0 || !is_space(code_point(text.substr(end, length)))) break;
    }
    return {begin, end, best};
  }
  return {text.size(), text.size()};
}

// ---- texts in parts

/// Whether what comes before a place and what follows get the same ids apart as together.
bool PretrainedTokenizer::begins_word(std::string_view text, size_t at) const {
  if (space_before(text, at)) return description_.byte_level && text[at - 1] == '\n' && text[at] > ' ';
  if (text[at] != ' ') return false;
  return description_.byte_level || (spaces_begin_words_ && !text.substr(0, at).ends_with(kMetaspace));
}

/// Where a part that continues is cut: inside of what lies between two added tokens, so that the rest does not begin one.
size_t PretrainedTokenizer::last_cut(std::string_view text) const {
  const size_t certain = text.size() - std::min(text.size(), longest_added_ + 4);
  size_t cut = 0, begin = 0;
  while (begin < certain) {
    const Match added = next_added(text, begin, added_);
    const size_t end = std::min(added.begin, certain);
    for (size_t at = end; at > begin + 1; --at)
      if (at < text.size() && begins_word(text, at)) {
        cut = at;
        break;
      }
    begin = added.end;
  }
  return cut;
}

size_t PretrainedTokenizer::encode_part(const TextPart& part, std::vector<int64_t>& ids) const {
  const std::string_view text = part.text.substr(0, part.last ? part.text.size() : last_cut(part.text));
  for (size_t at = 0; at < text.size();) {
    const Match added = next_added(text, at, added_);
    encode_segment(text.substr(at, added.begin - at), part.offset == 0 && at == 0, part.offset > 0 && at == 0, ids);
    if (added.token != nullptr) ids.push_back(added.token->id);
    at = added.end;
  }
  return text.size();
}

/// What lies between two added tokens; bytes that are no UTF-8 are tokens of their own.
void PretrainedTokenizer::encode_segment(std::string_view text, bool at_start, bool continues,
                                         std::vector<int64_t>& ids) const {
  for (size_t at = 0; at < text.size();) {
    const size_t valid = std::min(find_invalid_utf8(text.substr(at)), text.size() - at);
    encode_valid(text.substr(at, valid), at_start && at == 0, continues || at > 0, ids);
    at += valid;
    size_t end = at;
    while (end < text.size() && utf8_length(text, end) == 0) ++end;
    add_bytes(text.substr(at, end - at), ids);
    at = end;
  }
}

// ---- words

std::string PretrainedTokenizer::normalized(std::string_view text, bool prepends) const {
  std::string out(text);
  for (const NormalizerStep& step : description_.normalizer) {
    if (step.kind == NormalizerStep::Kind::nfc) out = to_nfc(out);
    if (step.kind == NormalizerStep::Kind::prepend && prepends && !out.empty()) out = step.text + out;
    if (step.kind == NormalizerStep::Kind::replace) out = replace_all(out, step.pattern, step.text);
  }
  return out;
}

void PretrainedTokenizer::encode_valid(std::string_view raw, bool at_start, bool continues, std::vector<int64_t>& ids) const {
  const std::string text = normalized(raw, !continues);
  for (size_t at = 0; at < text.size();) {
    const Match added = next_added(text, at, normalized_);
    encode_normalized(text.substr(at, added.begin - at), at_start && at == 0, continues && at == 0, ids);
    if (added.token != nullptr) ids.push_back(added.token->id);
    at = added.end;
  }
}

void PretrainedTokenizer::encode_normalized(std::string text, bool at_start, bool continues, std::vector<int64_t>& ids) const {
  const TokenizerDescription& d = description_;
  if (text.empty()) return;
  if (d.spaces_become) text = replace_all(text, " ", kMetaspace);
  if (!continues && (at_start || !d.prefix_first) && !text.starts_with(d.prefix)) text = d.prefix + text;
  std::vector<std::string_view> words{text};
  for (const Pattern& split : splits_) {
    std::vector<std::string_view> parts;
    for (const std::string_view word : words) {
      size_t from = 0;
      for (size_t at = 0; at < word.size();) {
        const auto match = from < word.size() ? split.find(word, from) : std::nullopt;
        const size_t begin = match ? match->first : word.size(), end = match ? match->second : word.size();
        if (begin > at) parts.push_back(word.substr(at, begin - at));
        if (end > begin) parts.push_back(word.substr(begin, end - begin));
        at = from = end;
        if (begin == end && end < word.size()) from += utf8_length(word, end);  // an empty match only separates
      }
    }
    words = std::move(parts);
  }
  for (std::string_view word : words) {
    while (spaces_begin_words_) {
      const size_t end = metaspace_after_other(word);
      if (end == std::string_view::npos) break;
      encode_word(word.substr(0, end), ids);
      word.remove_prefix(end);
    }
    encode_word(word, ids);
  }
}

void PretrainedTokenizer::encode_word(std::string_view word, std::vector<int64_t>& ids) const {
  const auto whole = description_.ignore_merges ? ids_.find(word) : ids_.end();
  if (whole != ids_.end()) {
    ids.push_back(whole->second);
  } else {
    merger_.encode(word, ids);
  }
}

void PretrainedTokenizer::add_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  const TokenizerDescription& d = description_;
  if (d.byte_level) {
    for (const char byte : word) symbols.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    return;
  }
  bool after_unknown = false;
  for (size_t at = 0, length = 0; at < word.size(); at += length) {
    length = utf8_length(word, at);
    const std::string_view symbol = word.substr(at, length);
    const auto found = ids_.find(symbol);
    const auto has_byte = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)] >= 0; };
    const bool known = found != ids_.end(), fallback = d.byte_fallback && std::all_of(symbol.begin(), symbol.end(), has_byte);
    if (known) symbols.push_back(found->second);
    for (const char byte : symbol)
      if (!known && fallback) symbols.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    const bool unknown = !known && !fallback;
    if (unknown && d.unknown >= 0 && !(d.fuse_unknown && after_unknown)) symbols.push_back(d.unknown);
    after_unknown = unknown;
  }
}

/// The tokens of bytes that are no UTF-8.
void PretrainedTokenizer::add_bytes(std::string_view bytes, std::vector<int64_t>& ids) const {
  for (const char byte : bytes) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id >= 0 || description_.unknown >= 0) ids.push_back(id >= 0 ? id : description_.unknown);
  }
}

std::string PretrainedTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    text += decoded_[static_cast<size_t>(id)];
  }
  return description_.strips_space && text.starts_with(' ') ? text.substr(1) : text;
}

}  // namespace onestep::train
