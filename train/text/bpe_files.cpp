#include "train/text/bpe_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/new_files.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "train/text/byte_symbols.h"

namespace onestep::train {
namespace {

using nlohmann::json;

constexpr int64_t kMaxBytes = int64_t{16} << 20;

// Puts a vocabulary together from what two files say, and refuses what does not fit.
class Assembler {
 public:
  // `vocab` is at `pointer` in the file `source`.
  Assembler(const json& vocab, std::string source, std::string pointer)
      : source_(std::move(source)), pointer_(std::move(pointer)) {
    const std::string all = pointer_.empty() ? source_ : source_ + ": " + pointer_;
    ONESTEP_CHECK(IoError, vocab.is_object() && !vocab.empty(), all, ": must be an object of symbols and ids: got ",
                  brief(vocab));
    std::vector<const std::string*> symbols(vocab.size());
    for (const auto& [symbol, id] : vocab.items()) {
      const std::string where = place(symbol);
      ONESTEP_CHECK(IoError, id.is_number_unsigned() && id.get<uint64_t>() < vocab.size(), where, ": must be an id from 0 to ",
                    vocab.size() - 1, ": got ", brief(id));
      const auto at = id.get<size_t>();
      ONESTEP_CHECK(IoError, !symbol.empty(), all, ": the symbol of id ", at, " is empty");
      const auto [entry, fresh] = ids_.emplace(symbol, static_cast<int32_t>(at));
      ONESTEP_CHECK(IoError, symbols[at] == nullptr, where, ": id ", at, " is that of ",
                    symbols[at] == nullptr ? "" : quote(*symbols[at]), ", too");
      symbols[at] = &entry->first;
    }
    known_.resize(symbols.size());
    for (const std::string* symbol : symbols) add_symbol(*symbol);
    check_bytes(all);
  }

  // One merge, `left right`.
  void add_merge(std::string_view line, const std::string& where) {
    const size_t space = line.find(' ');
    ONESTEP_CHECK(IoError,
                  space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                      line.find(' ', space + 1) == std::string_view::npos,
                  where, ": must be two symbols with one space between them: got ", quote(line));
    const std::string left(line.substr(0, space)), right(line.substr(space + 1));
    const BpeMerge merge{find(left, where), find(right, where), find(left + right, where)};
    ONESTEP_CHECK(IoError, pairs_.emplace(merge.left, merge.right).second, where, ": merges ", quote(line), " a second time");
    known_[static_cast<size_t>(merge.result)] = true;
    out_.merges.push_back(merge);
  }

  // Whatever is neither a byte nor merged must be a special token.
  BpeVocabulary finish() {
    for (const auto& [symbol, id] : ids_) {
      if (known_[static_cast<size_t>(id)]) continue;
      ONESTEP_CHECK(IoError, symbol.size() > 2 && symbol.front() == '<' && symbol.back() == '>', place(symbol),
                    ": is neither a byte, nor the result of a merge, nor a special token (<...>)");
      out_.specials.push_back(id);
      out_.tokens[static_cast<size_t>(id)] = symbol;
    }
    std::sort(out_.specials.begin(), out_.specials.end());
    for (const BpeMerge& merge : out_.merges) {
      for (const int32_t part : {merge.left, merge.right}) {
        ONESTEP_CHECK(IoError, known_[static_cast<size_t>(part)], place(out_.tokens[static_cast<size_t>(part)]),
                      ": is merged, but neither a byte nor the result of a merge");
      }
    }
    return std::move(out_);
  }

 private:
  std::string place(const std::string& symbol) const { return source_ + ": " + json_pointer(pointer_, symbol); }

  void add_symbol(const std::string& symbol) {
    const std::optional<std::string> bytes = bytes_of_symbol(symbol);
    known_[out_.tokens.size()] = bytes && bytes->size() == 1;
    out_.tokens.push_back(bytes.value_or(symbol));  // what stands for no bytes can only be a special token
  }

  void check_bytes(const std::string& all) const {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string symbol = symbol_of_bytes(std::string(1, static_cast<char>(byte)));
      ONESTEP_CHECK(IoError, ids_.contains(symbol), all, ": has no symbol ", quote(symbol), ", which is byte ", byte);
    }
  }

  int32_t find(const std::string& symbol, const std::string& where) const {
    const auto found = ids_.find(symbol);
    ONESTEP_CHECK(IoError, found != ids_.end(), where, ": symbol ", quote(symbol), " is not in the vocabulary");
    return found->second;
  }

  std::string source_, pointer_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<bool> known_;  // by id: a byte, or made by a merge
  std::set<std::pair<int32_t, int32_t>> pairs_;
  BpeVocabulary out_;
};

void add_merge_lines(Assembler& assembler, const std::string& path) {
  const std::string text = read_file(path, kMaxBytes);
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);  // no symbol holds one
    at = end + 1;
    const size_t invalid = find_invalid_utf8(line);
    ONESTEP_CHECK(IoError, invalid == std::string::npos, path, ":", number + 1, ": not UTF-8: byte ",
                  invalid == std::string::npos ? "" : quote(line.substr(invalid, 1)));
    if (++number == 1 && line.starts_with("#version")) continue;
    assembler.add_merge(line, path + ":" + std::to_string(number));
  }
}

std::string json_string(const std::string& text) { return json(text).dump(); }

}  // namespace

BpeVocabulary bpe_bytes() {
  std::vector<unsigned> bytes(256);
  for (unsigned byte = 0; byte < 256; ++byte) bytes[byte] = byte;
  std::sort(bytes.begin(), bytes.end(), [](unsigned a, unsigned b) { return byte_alphabet()[a] < byte_alphabet()[b]; });
  BpeVocabulary out;
  for (const unsigned byte : bytes) out.tokens.emplace_back(1, static_cast<char>(byte));
  return out;
}

BpeVocabulary read_bpe_folder(const std::string& folder) {
  const std::filesystem::path at = folder;
  ONESTEP_CHECK(IoError, std::filesystem::is_directory(at), folder, ": is not a folder with vocab.json and merges.txt");
  for (const auto& [vocab, merges] : {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")}) {
    if (!std::filesystem::exists(at / vocab)) continue;
    const std::string path = (at / vocab).string();
    Assembler assembler(read_json<IoError>(path, kMaxBytes), path, "");
    add_merge_lines(assembler, (at / merges).string());
    return assembler.finish();
  }
  fail<IoError>(folder, ": has neither vocab.json and merges.txt nor encoder.json and vocab.bpe");
}

BpeVocabulary bpe_from_json(const json& root, const std::string& source) {
  for (const char* key : {"vocab", "merges"})
    ONESTEP_CHECK(IoError, root.contains(key), source, ": /", key, ": missing (a tokenizer of kind bpe has vocab and merges)");
  Assembler assembler(root["vocab"], source, "/vocab");
  const json& merges = root["merges"];
  ONESTEP_CHECK(IoError, merges.is_array(), source, ": /merges: must be a list of strings: got ", brief(merges));
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string where = source + ": /merges/" + std::to_string(i);
    ONESTEP_CHECK(IoError, merges[i].is_string(), where, ": must be a string: got ", brief(merges[i]));
    assembler.add_merge(merges[i].get_ref<const std::string&>(), where);
  }
  return assembler.finish();
}

std::string vocab_json_text(const BpeVocabulary& vocabulary) {
  std::string out = "{";
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    const bool special = std::binary_search(vocabulary.specials.begin(), vocabulary.specials.end(), static_cast<int32_t>(id));
    out += (id == 0 ? "" : ", ") + json_string(special ? token : symbol_of_bytes(token)) + ": " + std::to_string(id);
  }
  return out + "}";
}

namespace {

std::string merge_line(const BpeVocabulary& vocabulary, const BpeMerge& merge) {
  const auto symbol = [&](int32_t id) { return symbol_of_bytes(vocabulary.tokens[static_cast<size_t>(id)]); };
  return symbol(merge.left) + " " + symbol(merge.right);
}

}  // namespace

std::string merges_text(const BpeVocabulary& vocabulary) {
  std::string out = "#version: 0.2\n";
  for (const BpeMerge& merge : vocabulary.merges) out += merge_line(vocabulary, merge) + "\n";
  return out;
}

void write_bpe(NewFiles& files, const BpeVocabulary& vocabulary) {
  files.add("vocab.json", vocab_json_text(vocabulary));
  files.add("merges.txt", merges_text(vocabulary));
}

std::string bpe_to_json(const BpeVocabulary& vocabulary) {
  std::string out = R"({"kind": "bpe", "vocab": )" + vocab_json_text(vocabulary) + R"(, "merges": [)";
  for (size_t i = 0; i < vocabulary.merges.size(); ++i)
    out += (i == 0 ? "" : ", ") + json_string(merge_line(vocabulary, vocabulary.merges[i]));
  return out + "]}\n";
}

}  // namespace onestep::train
