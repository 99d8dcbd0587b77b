#include "train/data/classification.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "train/data/examples.h"
#include "train/data/records.h"
#include "train/data/text_source.h"

namespace onestep::train {
namespace {

using nlohmann::json;

constexpr int64_t kMostLabels = 1000;

/// A text, a whole number or true or false, as text.
std::string scalar_of(const json& object, const std::string& key, const std::string& place) {
  const auto found = object.find(key);
  ONESTEP_CHECK(ConfigError, found != object.end(), place, ": has no ", quote(key));
  if (found->is_string()) return found->get<std::string>();
  ONESTEP_CHECK(ConfigError, found->is_number_integer() || found->is_boolean(), place, ": ", json_pointer("", key),
                ": must be a text or a whole number: got ", brief(*found));
  return found->dump();
}

/// A column that is named by its number, counted from 1.
std::optional<size_t> column_number(const std::string& name) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && number > 0;
  return is_number ? std::optional(number - 1) : std::nullopt;
}

size_t column_named(const TableRow& header, const std::string& name) {
  const auto found = std::find(header.fields.begin(), header.fields.end(), name);
  ONESTEP_CHECK(ConfigError, found != header.fields.end(), header.place, ": has no column ", quote(name), ": got ",
                escaped(join(header.fields, ", ")),
                " (data.text_column and data.label_column name them, or are both numbers from 1)");
  return static_cast<size_t>(found - header.fields.begin());
}

std::vector<LabelledText> from_table(const std::string& file, const DataConfig& data) {
  const std::vector<TableRow> rows = read_table(file);
  ONESTEP_CHECK(ConfigError, !rows.empty(), file, ": has no rows");
  std::optional<size_t> text = column_number(data.text_column), label = column_number(data.label_column);
  const bool numbered = text && label;
  if (!numbered) {
    text = column_named(rows[0], data.text_column);
    label = column_named(rows[0], data.label_column);
  }
  const size_t columns = rows[0].fields.size();
  ONESTEP_CHECK(ConfigError, std::max(*text, *label) < columns, rows[0].place, ": has ", columns,
                " columns, not as many as data.text_column or data.label_column says");
  std::vector<LabelledText> texts;
  for (size_t i = numbered ? 0 : 1; i < rows.size(); ++i)
    texts.push_back({rows[i].fields[*text], rows[i].fields[*label], rows[i].place});
  return texts;
}

/// The labels of the config, else those of the texts, sorted.
std::vector<std::string> labels_of(const Config& config, const std::vector<LabelledText>& texts) {
  if (!config.data.labels.empty()) return config.data.labels;
  std::set<std::string> found;
  for (const LabelledText& each : texts) found.insert(each.label);
  const auto count = static_cast<int64_t>(found.size());
  ONESTEP_CHECK(ConfigError, count >= 2 && count <= kMostLabels, config.origin.at("/data/label_column"),
                ": must have from 2 to ", kMostLabels, " different labels: got ", count);
  return {found.begin(), found.end()};
}

class ClassificationData : public ExampleData {
 public:
  ClassificationData(const Config& config, ExampleSet examples, std::shared_ptr<const Tokenizer> tokenizer,
                     std::vector<std::string> labels)
      : ExampleData(config, std::move(examples), std::move(tokenizer),
                    /*packed=*/false, /*most_targets=*/1),
        labels_(std::move(labels)) {}
  void complete(DataConfig& data) const override { data.labels = labels_; }
  const std::vector<std::string>& labels() const override { return labels_; }
  std::string describe() const override { return ExampleData::describe() + ", labels " + escaped(join(labels_, ", ")); }

 private:
  std::vector<std::string> labels_;
};

}  // namespace

std::vector<LabelledText> read_labelled_texts(const std::string& file, const DataConfig& data) {
  std::vector<LabelledText> texts;
  if (file.ends_with(".jsonl")) {
    for_each_json_line(file, [&](const json& row, const std::string& place) {
      ONESTEP_CHECK(ConfigError, row.is_object(), place, ": must be an object: got ", brief(row));
      texts.push_back({scalar_of(row, data.text_column, place), scalar_of(row, data.label_column, place), place});
    });
  } else {
    ONESTEP_CHECK(ConfigError, file.ends_with(".csv") || file.ends_with(".tsv"), file,
                  ": must be a .csv, .tsv or .jsonl file with a text and its "
                  "label a row");
    texts = from_table(file, data);
  }
  for (const LabelledText& each : texts) {
    ONESTEP_CHECK(ConfigError, !each.text.empty(), each.place, ": the text is empty");
    ONESTEP_CHECK(ConfigError, !each.label.empty(), each.place, ": the label is empty");
  }
  return texts;
}

std::unique_ptr<Data> make_classification_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet) {
  const auto read = [&](const std::string& file) { return read_labelled_texts(file, config.data); };
  const auto train = read_all(text_files(config), read), validation = read_all(validation_files(config), read);
  const std::vector<std::string> labels = labels_of(config, train);
  if (!tokenizer) {
    std::string text;
    for (const std::vector<LabelledText>* const part : {&train, &validation})
      for (const LabelledText& each : *part) text += each.text + ' ';
    tokenizer = make_tokenizer(config.data.tokenizer, text);
  }
  CutExamples cut;
  const auto encode = [&](const std::vector<LabelledText>& texts) {
    std::vector<Example> examples;
    for (const LabelledText& each : texts) {
      const auto label = std::find(labels.begin(), labels.end(), each.label);
      const std::string meant = label == labels.end() ? nearest(each.label, labels) : "";
      ONESTEP_CHECK(ConfigError, label != labels.end(), each.place, ": the label must be one of ", escaped(join(labels, ", ")),
                    ": got ", quote(each.label), did_you_mean(escaped(meant)));
      Example example{
          .inputs = at_place(each.place, [&] { return tokenizer->encode_prompt(each.text); }), .targets = {}, .key = each.text};
      ONESTEP_CHECK(ConfigError, !example.inputs.empty(), each.place, ": the text has no tokens");
      example.targets.resize(example.inputs.size(), kIgnoreIndex);
      cut.cut += cut_to(example, config.model.context_length);
      ++cut.all;
      example.targets.back() = label - labels.begin();
      examples.push_back(std::move(example));
    }
    return examples;
  };
  ExampleSet set{encode(train), encode(validation)};
  cut.say("texts", config.model.context_length, quiet);
  if (config.data.val_path.empty()) set = hold_out(std::move(set.train), config);
  return std::make_unique<ClassificationData>(config, std::move(set), tokenizer, labels);
}

}  // namespace onestep::train
