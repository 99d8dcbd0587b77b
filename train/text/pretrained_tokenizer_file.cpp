#include "train/text/pretrained_tokenizer_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_object.h"
#include "base/json_reader.h"
#include "base/utf8.h"
#include "train/text/byte_symbols.h"

namespace onestep::train {
namespace {

using nlohmann::json;

constexpr std::string_view kMetaspace = "\u2581";  // ▁
constexpr uint64_t kMaxTokens = 1 << 24;
// What Metaspace cuts by: before each of its symbols.
constexpr const char* kMetaspacePattern = "\u2581[^\u2581]*|[^\u2581]+";

/// An object of the file.
class Part : public JsonObject {
 public:
  explicit Part(const JsonObject& object) : JsonObject(object) {}

  /// Throws unless the key is absent or has this value.
  void only(const char* key, const json& value) const {
    if (has(key) && *find(key) != value) refuse(key, value.is_null() ? "absent" : value.dump());
  }
  int32_t id(const char* key) const {
    const json* const found = find(key);
    if (found == nullptr || !found->is_number_unsigned() || found->get<uint64_t>() >= kMaxTokens) refuse(key, "a token id");
    return found->get<int32_t>();
  }
  Part part(const char* key) const { return Part(object(key)); }
  std::vector<Part> parts(const char* key) const {
    std::vector<Part> list;
    for (const JsonObject& item : objects(key)) list.emplace_back(item);
    return list;
  }
  /// The parts of a Sequence, which are in the list `key`; else the part alone.
  std::vector<Part> sequence(const char* key) const { return text("type") == "Sequence" ? parts(key) : std::vector{*this}; }
  [[noreturn]] void refuse_type(const std::string& known) const { refuse("type", known); }
};

void read_normalizer(const Part& part, TokenizerDescription& out) {
  const std::string type = part.text("type");
  using Kind = NormalizerStep::Kind;
  if (type == "NFC") {
    out.normalizer.push_back({Kind::nfc, "", ""});
  } else if (type == "Prepend") {
    out.normalizer.push_back({Kind::prepend, "", part.text("prepend")});
  } else if (type == "Replace") {
    out.normalizer.push_back({Kind::replace, part.part("pattern").text("String"), part.text("content")});
    if (out.normalizer.back().pattern.empty()) part.refuse("pattern", "a string that is not empty");
  } else {
    part.refuse_type("Sequence, NFC, Prepend or Replace");
  }
}

/// Throws where the steps together could make a text grow beyond all memory.
void check_growth(const Part& root, const TokenizerDescription& out) {
  double growth = 1;
  size_t prepended = 0;
  for (const NormalizerStep& step : out.normalizer) {
    if (step.kind == NormalizerStep::Kind::replace)
      growth *= std::max(1.0, static_cast<double>(step.text.size()) / static_cast<double>(step.pattern.size()));
    if (step.kind == NormalizerStep::Kind::prepend) prepended += step.text.size();
  }
  ONESTEP_CHECK(IoError, growth <= 64 && prepended <= 1024, root.place(), "/normalizer: would make a text up to ", growth,
                " times as long, and longer by ", prepended, " bytes (at most 64 times, and 1024 bytes)");
}

void read_pre_tokenizer(const Part& part, TokenizerDescription& out) {
  const std::string type = part.text("type");
  const auto set_prefix = [&](std::string_view prefix) {
    if (!out.splits.empty()) part.refuse_type("first where it puts something before a text");
    out.prefix = prefix;
  };
  if (type == "ByteLevel") {
    out.byte_level = true;
    if (part.flag("add_prefix_space", true)) set_prefix(" ");
    if (part.flag("use_regex", true)) out.splits.emplace_back(kGpt2Words);
  } else if (type == "Split") {
    part.only("behavior", "Isolated");
    part.only("invert", false);
    out.splits.push_back(part.part("pattern").text("Regex"));
  } else if (type == "Metaspace") {
    part.only("replacement", kMetaspace);
    const std::string scheme = part.text("prepend_scheme");
    if (scheme != "always" && scheme != "first" && scheme != "never") part.refuse("prepend_scheme", "always, first or never");
    if (scheme != "never") set_prefix(kMetaspace);
    out.spaces_become = true;
    out.prefix_first = scheme == "first";
    if (part.flag("split", true)) out.splits.emplace_back(kMetaspacePattern);
  } else {
    part.refuse_type("Sequence, ByteLevel, Split or Metaspace");
  }
}

void read_decoder(const Part& part, TokenizerDescription& out) {
  const std::string type = part.text("type");
  if (type == "ByteLevel") {
    if (!out.byte_level) part.refuse_type("ByteLevel only with the pre-tokenizer ByteLevel");
  } else if (type == "Replace") {
    part.part("pattern").only("String", kMetaspace);
    part.only("content", " ");
    out.decodes_metaspace = true;
  } else if (type == "Metaspace") {
    part.only("replacement", kMetaspace);
    out.decodes_metaspace = true;
    out.strips_space = !part.has("prepend_scheme") || part.text("prepend_scheme") != "never";
  } else if (type == "ByteFallback") {
    out.decodes_bytes = true;
  } else if (type == "Strip") {
    part.only("content", " ");
    part.only("start", 1);
    part.only("stop", 0);
    out.strips_space = true;
  } else if (type != "Fuse") {
    part.refuse_type("Sequence, ByteLevel, Replace, Metaspace, ByteFallback, Fuse or Strip");
  }
}

void read_post_processor(const Part& part, TokenizerDescription& out) {
  const std::string type = part.text("type");
  if (type == "ByteLevel") return;
  if (type != "TemplateProcessing") part.refuse_type("Sequence, ByteLevel or TemplateProcessing");
  for (const Part& piece : part.parts("single")) {
    if (piece.has("Sequence")) return;  // what follows a text ends it: a prompt continues
    const Part special = part.part("special_tokens").part(piece.part("SpecialToken").text("id").c_str());
    if (!special["ids"].is_array()) special.refuse("ids", "a list of token ids");
    for (const json& id : special["ids"]) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxTokens) special.refuse("ids", "a list of token ids");
      out.prompt_prefix.push_back(id.get<int64_t>());
    }
  }
}

/// The vocabulary and its merges.
class ModelReader {
 public:
  ModelReader(Part part, TokenizerDescription& out) : part_(std::move(part)), out_(out) {}

  void read() {
    part_.only("type", "BPE");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (part_.has(key) && !(part_[key].is_string() && part_.text(key).empty())) part_.refuse(key, "absent");
    read_vocabulary();
    read_merges();
    out_.byte_fallback = part_.flag("byte_fallback");
    out_.ignore_merges = part_.flag("ignore_merges");
    out_.fuse_unknown = part_.flag("fuse_unk");
    if (part_.has("unk_token")) out_.unknown = find(part_.text("unk_token"), part_.place() + "/unk_token");
  }

 private:
  void read_vocabulary() {
    const Part vocabulary = part_.part("vocab");
    for (const auto& [symbol, id] : vocabulary.value().items()) {
      const std::string place = json_pointer(vocabulary.place(), symbol);
      ONESTEP_CHECK(IoError, id.is_number_unsigned() && id.get<uint64_t>() < kMaxTokens, place, ": must be a token id: got ",
                    brief(id));
      ONESTEP_CHECK(IoError, !symbol.empty(), place, ": the symbol is empty");
      const auto at = id.get<size_t>();
      // Ids without a token are few: a file cannot make the table larger than itself by much.
      ONESTEP_CHECK(IoError, at < 2 * vocabulary.value().size() + 65536, place, ": id ", at,
                    " is far above the number of tokens, ", vocabulary.value().size());
      if (at >= out_.tokens.size()) out_.tokens.resize(at + 1);
      ONESTEP_CHECK(IoError, out_.tokens[at].empty(), place, ": id ", at, " is that of ", quote(out_.tokens[at]), ", too");
      out_.tokens[at] = symbol;
      ids_.emplace(symbol, static_cast<int32_t>(at));
    }
  }

  /// `"a b"`, or since tokenizers 0.20 `["a", "b"]`.
  void read_merges() {
    const json& merges = part_["merges"];
    if (!merges.is_array()) part_.refuse("merges", "a list");
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (size_t i = 0; i < merges.size(); ++i) {
      const std::string place = part_.place() + "/merges/" + std::to_string(i);
      std::string left, right;
      if (merges[i].is_array() && merges[i].size() == 2 && merges[i][0].is_string() && merges[i][1].is_string()) {
        left = merges[i][0].get<std::string>();
        right = merges[i][1].get<std::string>();
      } else if (merges[i].is_string()) {
        const auto& line = merges[i].get_ref<const std::string&>();
        const size_t space = line.find(' ');
        if (space != std::string::npos && line.find(' ', space + 1) == std::string::npos) {
          left = line.substr(0, space);
          right = line.substr(space + 1);
        }
      }
      ONESTEP_CHECK(IoError, !left.empty() && !right.empty(), place, ": must be two symbols: got ", brief(merges[i]));
      const BpeMerge merge{find(left, place), find(right, place), find(left + right, place)};
      ONESTEP_CHECK(IoError, pairs.emplace(merge.left, merge.right).second, place, ": merges ", quote(left + " " + right),
                    " a second time");
      out_.merges.push_back(merge);
    }
  }

  int32_t find(const std::string& symbol, const std::string& place) const {
    const auto found = ids_.find(symbol);
    ONESTEP_CHECK(IoError, found != ids_.end(), place, ": symbol ", quote(symbol), " is not in the vocabulary");
    return found->second;
  }

  Part part_;
  TokenizerDescription& out_;
  std::unordered_map<std::string, int32_t> ids_;
};

void read_added_tokens(const Part& root, TokenizerDescription& out) {
  if (!root.has("added_tokens")) return;
  for (const Part& part : root.parts("added_tokens")) {
    AddedToken token{part.text("content"), part.id("id"),           part.flag("lstrip"),
                     part.flag("rstrip"),  part.flag("normalized"), part.flag("special")};
    if (token.content.empty()) part.refuse("content", "a string that is not empty");
    part.only("single_word", false);
    if (static_cast<size_t>(token.id) >= 2 * (out.tokens.size() + out.added.size()) + 65536)
      part.refuse("id", "near the number of tokens");
    out.added.push_back(std::move(token));
  }
}

void check_bytes(const Part& root, const TokenizerDescription& out) {
  const std::set<std::string> symbols(out.tokens.begin(), out.tokens.end());
  for (int byte = 0; out.byte_level && byte < 256; ++byte) {
    const std::string symbol = symbol_of_bytes(std::string(1, static_cast<char>(byte)));
    ONESTEP_CHECK(IoError, symbols.contains(symbol), root.place(), "/model/vocab: has no symbol ", quote(symbol),
                  ", which is byte ", byte);
  }
}

}  // namespace

bool is_tokenizer_description(const json& root) { return root.is_object() && root.contains("model") && !root.contains("kind"); }

TokenizerDescription read_tokenizer_description(const json& file, std::string text, const std::string& source) {
  const Part root(JsonObject(file, source + ": "));
  TokenizerDescription out;
  ModelReader(root.part("model"), out).read();
  if (root.has("normalizer"))
    for (const Part& part : root.part("normalizer").sequence("normalizers")) read_normalizer(part, out);
  check_growth(root, out);
  if (root.has("pre_tokenizer"))
    for (const Part& part : root.part("pre_tokenizer").sequence("pretokenizers")) read_pre_tokenizer(part, out);
  if (root.has("decoder"))
    for (const Part& part : root.part("decoder").sequence("decoders")) read_decoder(part, out);
  if (root.has("post_processor"))
    for (const Part& part : root.part("post_processor").sequence("processors")) read_post_processor(part, out);
  read_added_tokens(root, out);
  check_bytes(root, out);
  for (const std::string& split : out.splits) {
    try {
      const Pattern readable(from_oniguruma(split));
    } catch (const ConfigError& error) {
      fail<IoError>(root.place(), "/pre_tokenizer: ", error.what());
    }
  }
  out.json = std::move(text);
  return out;
}

}  // namespace onestep::train
