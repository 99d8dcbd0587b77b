#pragma once
// Kind `classification`: texts with labels.
#include <memory>
#include <string>
#include <vector>

#include "train/data/data.h"

namespace onestep::train {

struct LabelledText {
  std::string text, label;
  std::string place = {};  ///< `FILE: line 12`
};

/// The rows of a CSV, TSV or JSONL file, by its name, of which data.text_column and data.label_column name the columns: by the
/// first line or, where both are numbers, counted from 1 in a file without such a line. Throws IoError, and ConfigError naming
/// file and line.
std::vector<LabelledText> read_labelled_texts(const std::string& file, const DataConfig& data);

/// The data of a resolved config of kind classification, read with `tokenizer` or, where it is null, one made of the texts. A
/// target is the number of a label, at the last token of a text. Throws ConfigError and IoError.
std::unique_ptr<Data> make_classification_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet);

}  // namespace onestep::train
