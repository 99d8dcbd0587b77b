#pragma once
// GPT-2's vocabulary files: `vocab.json` (symbol -> id) and `merges.txt` (two symbols a line, the first line merged first).
// In both a byte is written as one printable character, so that a symbol holds neither spaces nor controls. Not a public
// header: it names the JSON library.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/new_files.h"
#include "train/text/bpe_vocabulary.h"

namespace onestep::train {

/// The 256 bytes as tokens 0 to 255, in the order of GPT-2 (that of their characters): `!` is 0, a space 220.
BpeVocabulary bpe_bytes();

/// Reads DIR/vocab.json and DIR/merges.txt, or DIR/encoder.json and DIR/vocab.bpe, of at most 16 MiB each. Throws IoError
/// naming file and line or key unless: ids are 0 .. n - 1, each once; all bytes are there; each merge is of two known symbols
/// into a third, and new; any other entry is a special token, `<...>`.
BpeVocabulary read_bpe_folder(const std::string& folder);

/// `tokenizer.json` of a run: `{"kind": "bpe", "vocab": {...}, "merges": ["a b", ...]}`.
std::string bpe_to_json(const BpeVocabulary& vocabulary);

/// What bpe_to_json writes, checked as read_bpe_folder checks its files; `source` stands for the file name in messages.
BpeVocabulary bpe_from_json(const nlohmann::json& root, const std::string& source);

/// What vocab.json and merges.txt hold.
std::string vocab_json_text(const BpeVocabulary& vocabulary);
std::string merges_text(const BpeVocabulary& vocabulary);

/// Writes the two. Throws IoError.
void write_bpe(NewFiles& files, const BpeVocabulary& vocabulary);

}  // namespace onestep::train
