#include <unistd.h>

#include <charconv>
#include <iostream>
#include <memory>

#include "base/format.h"
#include "base/new_files.h"
#include "base/progress_bar.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "train/log/metrics.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"
#include "train/text/bpe_trainer.h"
#include "train/text/chunked_reader.h"

namespace onestep::cli {
namespace {

const std::string kStandardInput = "-";

struct Options {
  std::vector<std::string> texts;
  std::string tokenizer, file = kStandardInput, out, format = "lines";
  int64_t vocab_size = 0;
  bool quiet = false;
};

// What messages call it.
std::string shown(const std::string& name) { return name == kStandardInput ? "standard input" : name; }

ReadBytes reader(const std::string& name, std::shared_ptr<InputFile> file = nullptr) {
  if (name == kStandardInput) return [name](char* to, size_t count) { return read_some(STDIN_FILENO, shown(name), to, count); };
  if (!file) file = std::make_shared<InputFile>(name);
  return [file](char* to, size_t count) { return file->read_some(to, count); };
}

// for_each_part of a file; what is wrong in it is said with its name.
void read_parts(const std::string& name, const TakePart& take) {
  try {
    for_each_part(reader(name), take);
  } catch (const ConfigError& error) {
    fail<ConfigError>(shown(name), ": ", error.what());
  }
}

int encode(const Options& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  const bool json = options.format == "json";
  bool first = true;
  std::vector<int64_t> ids;
  read_parts(options.file, [&](const TextPart& part) {
    ids.clear();
    const size_t taken = tokenizer->encode_part(part, ids);
    std::string text;
    for (const int64_t id : ids) {
      if (json) text += first ? "[" : ", ";
      text += std::to_string(id);
      if (!json) text += '\n';
      first = false;
    }
    std::cout << text;
    return taken;
  });
  if (json) std::cout << (first ? "[]\n" : "]\n");
  return 0;
}

bool separates(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == ',' || c == '[' || c == ']'; }

// Ids separated by white space, commas or brackets: what encode prints.
std::vector<int64_t> parse_ids(std::string_view text) {
  std::vector<int64_t> ids;
  for (size_t at = 0; at < text.size();) {
    if (separates(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !separates(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    int64_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    ONESTEP_CHECK(ConfigError, error == std::errc() && stop == word.data() + word.size(),
                  "decode: not a token id: ", quote(word));
    ids.push_back(id);
    at = end;
  }
  return ids;
}

int decode(const Options& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  if (tokenizer->kind() == TokenizerKind::words) {  // whether a space is due depends on the word before
    std::string text;
    read_parts(options.file, [&](const TextPart& part) {
      text.append(part.text);
      if (part.last) std::cout << tokenizer->decode(parse_ids(text));
      return part.text.size();
    });
    return 0;
  }
  read_parts(options.file, [&](const TextPart& part) {
    size_t certain = part.text.size();
    while (!part.last && certain > 0 && !separates(part.text[certain - 1])) --certain;
    std::cout << tokenizer->decode(parse_ids(part.text.substr(0, certain)));
    return certain;
  });
  return 0;
}

// A vocabulary may be learnt again, but it replaces no other file, and none of a run or a model.
void check_replaces_vocabulary(const std::filesystem::path& folder) {
  for (const char* name : {"config.json", "tokenizer.json"})
    ONESTEP_CHECK(ConfigError, !std::filesystem::exists(folder / name), (folder / name).string(),
                  ": belongs to a run or a model, whose tokenizer would be another one (name another folder with --out)");
  if (!std::filesystem::exists(folder / "vocab.json") && !std::filesystem::exists(folder / "merges.txt")) return;
  try {
    open_tokenizer(folder.string());
  } catch (const Error&) {
    fail<ConfigError>(folder.string(),
                      ": its vocab.json and merges.txt are no byte-pair encoding and would be lost (name another "
                      "folder with --out)");
  }
}

int train(const Options& options) {
  check_replaces_vocabulary(options.out);
  BpeTrainer trainer;
  bool is_empty = true;
  for (const std::string& name : options.texts) {
    const auto file = name == kStandardInput ? nullptr : std::make_shared<InputFile>(name);
    ProgressBar progress("reading " + name, file ? static_cast<int64_t>(file->size()) : 0, "bytes", options.quiet);
    for_each_part(reader(name, file), [&](const TextPart& part) {
      progress.show(part.offset);
      is_empty &= part.text.empty();
      return trainer.add(part);
    });
  }
  ONESTEP_CHECK(ConfigError, !is_empty, shown(options.texts[0]), options.texts.size() == 1 ? "" : " and all other texts",
                ": is empty: there is nothing to learn from");
  ProgressBar progress("learning merges", options.vocab_size, "tokens", options.quiet);
  const BpeVocabulary vocabulary = trainer.train(options.vocab_size, [&](int64_t merges) { progress.show(256 + merges); });
  NewFiles files(options.out);
  write_bpe(files, vocabulary);
  files.finish();
  const auto size = static_cast<int64_t>(vocabulary.tokens.size());
  std::cout << "tokens       " << grouped_count(size) << (size < options.vocab_size ? " (no other pair occurs twice)" : "")
            << '\n'
            << "longest      "
            << quote(*std::max_element(vocabulary.tokens.begin(), vocabulary.tokens.end(),
                                       [](const auto& a, const auto& b) { return a.size() < b.size(); }))
            << "\nfolder       " << options.out << '\n';
  return 0;
}

}  // namespace

void add_tokenizer(Command& app, Action& action) {
  const auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("tokenizer", "Learn a byte-pair encoding, or turn text into token ids and back");
  command->require_subcommand();

  auto* learn = command->add_subcommand("train", "Learn a byte-pair encoding from text; writes vocab.json and merges.txt");
  learn->add_option("TEXT", options->texts, "Text files (- for standard input)")->required();
  learn->add_option("--vocab-size", options->vocab_size, "Tokens: 256 bytes, merges, <|endoftext|>")
      ->type_name("N")
      ->check(whole_number(257, int64_t{1} << 24))
      ->required();
  learn->add_option("--out", options->out, "The folder to write to")->type_name("FOLDER")->required();
  learn->add_flag("--quiet", options->quiet, "No progress on stderr");
  learn->callback([&action, options] { action = [options] { return train(*options); }; });

  const auto add_codec = [&](const char* name, const char* what, const char* file, int (*run)(const Options&)) {
    auto* codec = command->add_subcommand(name, what);
    codec->add_option("TOKENIZER", options->tokenizer, "A run, or a folder with vocab.json and merges.txt, or tokenizer.json")
        ->required();
    codec->add_option("FILE", options->file, file);
    codec->callback([&action, options, run] { action = [options, run] { return run(*options); }; });
    return codec;
  };
  auto* to_ids = add_codec("encode", "The token ids of a text", "The text (default: standard input)", encode);
  to_ids->add_option("--format", options->format, "lines (an id a line) or json (default: lines)")
      ->type_name("lines|json")
      ->check(one_of({"lines", "json"}));
  add_codec("decode", "The text of token ids, byte for byte", "The ids (default: standard input)", decode);
}

}  // namespace onestep::cli
