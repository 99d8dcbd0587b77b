// Texts with labels: their files, and what a batch of them is.
#include "train/data/classification.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/data/records.h"
#include "train/evaluate.h"
#include "train/models/gpt.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;
using onestep::testing::TemporaryFolder;
using Ids = std::vector<int64_t>;

namespace {

/// `text=label` of every row.
std::vector<std::string> rows_of(const std::string& name, const std::string& bytes, const DataConfig& data = {}) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / name).string();
  onestep::testing::write(path, bytes);
  std::vector<std::string> rows;
  try {
    for (const LabelledText& each : read_labelled_texts(path, data)) rows.push_back(each.text + "=" + each.label);
  } catch (const ConfigError& error) {
    std::string said = error.what();
    REQUIRE(said.starts_with(path + ": "));
    throw ConfigError(said.substr(path.size() + 2));
  }
  return rows;
}

std::string refused(const std::string& name, const std::string& bytes, const DataConfig& data = {}) {
  return refusal<ConfigError>([&] { rows_of(name, bytes, data); });
}

std::unique_ptr<Data> data_of(const std::string& path, const std::string& more = "") {
  return make_data(
      parse_config(R"({"model": {"kind": "gpt", "context_length": 6, "d_model": 8, "num_heads": 2, "num_layers": 1},
      "data": {"kind": "classification", "tokenizer": "byte", "path": ")" +
                       path + "\"" + more + "}}",
                   "run.json"));
}

using Rows = std::vector<std::string>;

}  // namespace

TEST_CASE("classification: rows of CSV and TSV and JSON lines") {
  CHECK(rows_of("a.csv", "label,text\nx,one\ny,two\n") == Rows{"one=x", "two=y"});
  CHECK(rows_of("a.csv", "\xEF\xBB\xBFlabel,more,text\r\nx,,\"a, \"\"b\"\"\nc\"\r\n\r\ny,1,d") == Rows{"a, \"b\"\nc=x", "d=y"});
  CHECK(rows_of("a.tsv", "text\tlabel\nsay \"hi\", you\tx\n") == Rows{"say \"hi\", you=x"});
  DataConfig numbered;
  numbered.text_column = "2";
  numbered.label_column = "1";
  CHECK(rows_of("a.tsv", "x\tone\ny\ttwo\n", numbered) == Rows{"one=x", "two=y"});
  CHECK(rows_of("a.jsonl", "{\"text\": \"one\", \"label\": 1}\n\n{\"label\": true, \"text\": \"two\", \"id\": []}\n") ==
        Rows{"one=1", "two=true"});
  DataConfig other;
  other.text_column = "sms";
  CHECK(rows_of("a.csv", "label,sms\nx,one\n", other) == Rows{"one=x"});
}

TEST_CASE("classification: bad rows are refused by line") {
  CHECK(refused("a.csv", "text,label\none,x\n\ntwo\n") == "line 4: has 1 field, must have 2 as the first line");
  CHECK(refused("a.csv", "text,label\n\"a\nb\",x\n\"c,x\n") == "line 4: a quote is not closed");
  CHECK(refused("a.csv", "text,label\n\"a\"b,x\n").starts_with("line 2: field 1 continues after its quotes"));
  CHECK(refused("a.csv", "text,label\na\"b,x\n").starts_with("line 2: field 1 has a quote but does not begin with one"));
  CHECK(refused("a.csv", "text,label\n,x\n") == "line 2: the text is empty");
  CHECK(refused("a.csv", "text,label\na,\n") == "line 2: the label is empty");
  CHECK(refused("a.csv", "text,class\na,x\n").starts_with("line 1: has no column \"label\": got text, class"));
  CHECK(refused("a.csv", "text,label\na,x\n\xff,x\n") == "line 3: is not UTF-8");
  CHECK(refused("a.csv", "") == "has no rows");
  CHECK(refused("a.jsonl", "{\"text\": \"a\"}\n") == "line 1: has no \"label\"");
  CHECK(refused("a.jsonl", "{\"text\": \"a\", \"label\": 1.5}\n") ==
        "line 1: /label: must be a text or a whole number: got 1.5");
  CHECK(refused("a.jsonl", "[]\n").starts_with("line 1: "));
  CHECK(refused("a.jsonl", "{\n").starts_with("line 1:1:2: "));
  CHECK(refused("a.txt", "a").starts_with("must be a .csv, .tsv or .jsonl file"));
}

TEST_CASE("classification: a file without rows is refused by its name") {
  const TemporaryFolder folder;
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const std::string path = folder.path() / name;
    onestep::testing::write(path, path.ends_with(".csv") ? "text,label\n" : "\n");
    CHECK(refusal<ConfigError>([&] { data_of(path); }) == path + ": has no examples");
  }
}

TEST_CASE("classification: a batch is padded on the right and its one target a row is the label at the last token") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "a.csv").string();
  onestep::testing::write(path, "text,label\nabc,spam\nde,ham\nabcdefghi,ham\n");
  const auto data = data_of(path, R"(, "val_fraction": 0)");
  CHECK(data->labels() == Rows{"ham", "spam"});
  Generator g(1);
  const Batch batch = data->eval_batch_at(0, 12, g);
  CHECK(batch.batch == 3);
  CHECK(batch.length == 6);  // a longer text is cut
  CHECK(batch.inputs == Ids{'a', 'b', 'c', 0, 0, 0, 'd', 'e', 0, 0, 0, 0, 'a', 'b', 'c', 'd', 'e', 'f'});
  const int64_t no = kIgnoreIndex;
  CHECK(batch.targets == Ids{no, no, 1, no, no, no, no, 0, no, no, no, no, no, no, no, no, no, 0});
  CHECK(batch.sequences.empty());
  DataConfig completed;
  data->complete(completed);
  CHECK(completed.labels == data->labels());
  CHECK(data_of(path, R"(, "val_fraction": 0, "labels": ["spam", "other", "ham"])")->labels() == Rows{"spam", "other", "ham"});
  CHECK(refusal<ConfigError>([&] { data_of(path, R"(, "labels": ["spam", "hem"])"); }) ==
        path + ": line 3: the label must be one of spam, hem: got \"ham\" (did you mean hem?)");
  CHECK_THROWS_AS(data_of(path, R"(, "labels": ["spam", "spam"])"), ConfigError);
}

TEST_CASE("classification: a part is held out by its text whatever the order, or another file is") {
  const TemporaryFolder folder;
  const auto evaluated = [&](const Rows& lines, const std::string& more) {
    const std::string path = (folder.path() / "a.csv").string();
    std::string all = "text,label\n";
    for (const std::string& line : lines) all += line + "\n";
    onestep::testing::write(path, all);
    const auto data = data_of(path, more);
    Generator g(1);
    std::set<std::string> texts;
    for (int64_t i = 0; i < data->eval_batches(1, 100); ++i)
      texts.insert(ByteTokenizer().decode(data->eval_batch_at(i, 1, g).inputs));
    return texts;
  };
  Rows lines;
  for (char c = 'a'; c <= 't'; ++c) lines.push_back(std::string(1, c) + (c < 'j' ? ",x" : ",y"));
  const auto held_out = evaluated(lines, R"(, "val_fraction": 0.25)");
  CHECK(held_out.size() == 5);
  std::reverse(lines.begin(), lines.end());
  CHECK(evaluated(lines, R"(, "val_fraction": 0.25)") == held_out);
  const std::string other = (folder.path() / "val.csv").string();
  onestep::testing::write(other, "text,label\nqq,x\n");
  CHECK(evaluated(lines, R"(, "val_path": ")" + other + "\"") == std::set<std::string>{"qq"});
  onestep::testing::write(other, "text,label\nqq,z\n");
  CHECK(refusal<ConfigError>([&] {
          evaluated(lines, R"(, "val_path": ")" + other + "\"");
        }).starts_with(other + ": line 2: the label "));
}

TEST_CASE("classification: the logits of a text do not depend on the padding of its batch") {
  Generator generator(3);
  ModelConfig config{.kind = ModelKind::gpt, .d_model = 16, .num_heads = 2, .context_length = 6, .num_layers = 2, .d_ff = 24};
  const Gpt model(config, 256, generator, /*num_classes=*/3);
  CHECK(model.num_classes() == 3);
  const Batch padded{{'a', 'b', 0, 0, 0, 'a', 'b', 'c', 'd', 'e'}, {}, 2, 5}, alone{{'a', 'b'}, {}, 1, 2};
  const Tensor logits = model.forward(padded.input());
  CHECK(logits.shape() == Shape{2, 5, 3});
  CHECK(logits.select(0, 0).select(0, 1).to_vector<float>() == model.forward(alone.input()).select(1, 1).to_vector<float>());
  ModelCache cache;
  ModelCache* const caches[] = {&cache};
  CHECK(model.next_logits(alone.input(), caches).to_vector<float>() ==
        model.forward(alone.input()).select(1, 1).to_vector<float>());
}

TEST_CASE("classification: macro F1 is that of scikit-learn") {
  // f1_score([0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 0, 1], average="macro"), by hand: F1 is 1/2, 4/7 and 0.
  Evaluation evaluation;
  evaluation.confusion = {1, 1, 0, 1, 2, 0, 0, 1, 0};
  CHECK(evaluation.macro_f1() == doctest::Approx((0.5 + 4.0 / 7) / 3).epsilon(1e-12));
  evaluation.confusion = {2, 0, 0, 1, 1, 0, 0, 0, 0};  // a class that is nowhere does not count
  CHECK(evaluation.macro_f1() == doctest::Approx((0.8 + 2.0 / 3) / 2).epsilon(1e-12));
}
