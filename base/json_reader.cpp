#include "base/json_reader.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/read_file.h"
#include "base/utf8.h"

namespace onestep {
namespace {

using nlohmann::json;

// Builds the tree with an explicit stack and stops at the first thing that is wrong, which it keeps in `error`.
class StrictHandler : public nlohmann::json_sax<json> {
 public:
  explicit StrictHandler(size_t max_memory) : max_memory_(max_memory) {}
  StrictHandler(const StrictHandler&) = delete;  // it holds pointers into its own tree
  StrictHandler& operator=(const StrictHandler&) = delete;

  json root;
  std::string error;    // what is wrong, with the JSON pointer of the place
  std::string syntax;   // the parser's own complaint, if it had one
  size_t position = 0;  // bytes read until then

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(int64_t value) override { return add(value) != nullptr; }
  bool number_unsigned(uint64_t value) override { return add(value) != nullptr; }
  bool number_float(double value, const std::string&) override { return add(value) != nullptr; }
  bool string(std::string& value) override { return add(std::move(value)) != nullptr; }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (open_.back().container->contains(name)) {
      error = json_pointer(pointer(), name) + ": duplicate key";
      return false;
    }
    open_.back().key = std::move(name);
    return true;
  }

  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    position = at;
    syntax = e.what();
    return false;
  }

 private:
  struct Level {
    json* container;
    std::string key;  // the object's member being read
  };

  // The value's place in the tree, or nullptr if that would grow too large.
  json* add(json value) {
    memory_ += value.is_string() ? json_string_memory(value.get_ref<const std::string&>()) : value.is_structured() ? 96 : 32;
    if (!open_.empty()) memory_ += open_.back().key.empty() ? 0 : 96 + open_.back().key.size();
    if (memory_ > max_memory_) {
      error = "too many values: they would take more than " + format_bytes(static_cast<int64_t>(max_memory_)) + " of memory";
      return nullptr;
    }
    if (open_.empty()) return &(root = std::move(value));
    json& container = *open_.back().container;
    if (container.is_array()) {
      container.push_back(std::move(value));
      return &container.back();
    }
    return &(container[open_.back().key] = std::move(value));
  }

  bool open(json container) {
    if (open_.size() == kMaxJsonDepth) {
      error = "nested more than " + std::to_string(kMaxJsonDepth) + " levels deep";
      return false;
    }
    json* const place = add(std::move(container));
    if (place != nullptr) open_.push_back({place, ""});
    return place != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // Of the innermost open container.
  std::string pointer() const {
    std::string out;
    for (size_t i = 0; i + 1 < open_.size(); ++i) {
      const json& container = *open_[i].container;
      out = json_pointer(out, container.is_array() ? std::to_string(container.size() - 1) : open_[i].key);
    }
    return out;
  }

  std::vector<Level> open_;
  size_t max_memory_;
  size_t memory_ = 0;  // that the tree takes, roughly
};

// "LINE:COLUMN" of the byte at `offset`, both from 1; columns count characters.
std::string line_and_column(std::string_view text, size_t offset) {
  size_t line = 1, column = 1;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++line, column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u) {
      ++column;
    }
  }
  return std::to_string(line) + ":" + std::to_string(column);
}

// The run of letters and signs around `offset`, in lower case.
std::string word_at(std::string_view text, size_t offset) {
  const auto in_word = [&](size_t i) {
    return std::isalpha(static_cast<unsigned char>(text[i])) || text[i] == '-' || text[i] == '+';
  };
  size_t begin = std::min(offset, text.size()), end = begin;
  while (begin > 0 && in_word(begin - 1)) --begin;
  while (end < text.size() && in_word(end)) ++end;
  std::string word(text.substr(begin, end - begin));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

// The parser's complaint without its identifiers and positions.
std::string syntax_error(std::string_view text, size_t offset, const std::string& what) {
  const std::string word = word_at(text, offset);
  for (const std::string_view name : {"nan", "inf", "infinity"}) {
    if (word == name || (!word.empty() && word.substr(1) == name)) return "NaN and Infinity are not numbers in JSON";
  }
  if (what.find("out_of_range.406") != std::string::npos) return "a number too large for a double";
  const size_t dash = what.find(" - ");
  std::string detail = dash == std::string::npos ? what : what.substr(dash + 3);
  if (const size_t last = detail.find("; last read: "); last != std::string::npos) {
    const size_t end = detail.find("; expected", last);
    detail.erase(last, end == std::string::npos ? end : end - last);
  }
  return "not JSON: " + detail;
}

}  // namespace

std::string json_pointer(const std::string& pointer, std::string_view key) {
  std::string out = pointer + "/";
  for (const char c : printable(key)) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

std::string brief(const json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  const std::string text = value.dump(-1, ' ', true);  // ASCII, so that it can be cut anywhere
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

template <class E>
json parse_json(std::string_view text, const std::string& source, size_t max_memory) {
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos)
    fail<E>(source, ":", line_and_column(text, invalid), ": not UTF-8: ", quote(text.substr(invalid, 1)));
  const size_t nul = text.find('\0');  // the parser would take it for the end
  if (nul != std::string_view::npos) fail<E>(source, ":", line_and_column(text, nul), ": holds a NUL byte");

  StrictHandler handler(max_memory);
  if (json::sax_parse(text, &handler)) return std::move(handler.root);
  ONESTEP_CHECK(E, !handler.syntax.empty(), source, ": ", handler.error);
  const size_t offset = handler.position == 0 ? 0 : handler.position - 1;
  fail<E>(source, ":", line_and_column(text, offset), ": ", syntax_error(text, offset, handler.syntax));
}

template <class E>
json read_json(const std::string& path, int64_t max_bytes) {
  const std::string text = read_file(path, max_bytes);
  ONESTEP_CHECK(E, !text.empty(), path, ": is empty");
  return parse_json<E>(text, path);
}

template json parse_json<ConfigError>(std::string_view, const std::string&, size_t);
template json parse_json<IoError>(std::string_view, const std::string&, size_t);
template json read_json<ConfigError>(const std::string&, int64_t);
template json read_json<IoError>(const std::string&, int64_t);

}  // namespace onestep
