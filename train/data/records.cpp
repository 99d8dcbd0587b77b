#include "train/data/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/read_file.h"
#include "base/utf8.h"

namespace onestep::train {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

std::string line_of(const std::string& file, int64_t line) { return file + ": line " + std::to_string(line); }

/// The text of a file, without a byte order mark. Throws for what is no UTF-8.
std::string read_utf8(const std::string& file) {
  std::string text = read_file(file, kMostBytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  const size_t broken = find_invalid_utf8(text);
  if (broken != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(broken), '\n');
    fail<ConfigError>(line_of(file, line), ": is not UTF-8");
  }
  return text;
}

/// Cuts a table into rows.
class TableReader {
 public:
  explicit TableReader(const std::string& file)
      : file_(file), text_(read_utf8(file)), separator_(file.ends_with(".tsv") ? '\t' : ',') {}

  /// The next row that is not empty; false at the end.
  bool next(TableRow& row) {
    do {
      if (at_ >= text_.size()) return false;
      row = {{}, line_of(file_, line_)};
      bool more = true;
      while (more) more = read_field(row);
    } while (row.fields.size() == 1 && row.fields[0].empty());
    return true;
  }

 private:
  bool at_line_end() const { return at_ >= text_.size() || text_[at_] == '\n' || text_.compare(at_, 2, "\r\n") == 0; }

  /// Appends a field; whether another one follows in the row.
  bool read_field(TableRow& row) {
    const bool quoted = separator_ == ',' && at_ < text_.size() && text_[at_] == '"';
    row.fields.push_back(quoted ? quoted_field(row.place) : plain_field());
    if (at_line_end()) {
      at_ = std::min(text_.size(), at_ + (at_ < text_.size() && text_[at_] == '\r' ? 2 : 1));
      ++line_;
      return false;
    }
    ONESTEP_CHECK(ConfigError, text_[at_] == separator_, row.place, ": field ", row.fields.size(),
                  quoted ? " continues after its quotes" : " has a quote but does not begin with one",
                  " (a field with a quote is written in quotes, with those inside doubled)");
    ++at_;
    return true;
  }

  std::string plain_field() {
    const size_t begin = at_;
    while (!at_line_end() && text_[at_] != separator_ && !(separator_ == ',' && text_[at_] == '"')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string quoted_field(const std::string& place) {
    std::string field;
    for (++at_;; ++at_) {
      ONESTEP_CHECK(ConfigError, at_ < text_.size(), place, ": a quote is not closed");
      if (text_[at_] == '"' && text_.compare(at_, 2, "\"\"") != 0) break;
      if (text_[at_] == '"') ++at_;
      line_ += text_[at_] == '\n';
      field += text_[at_];
    }
    ++at_;
    return field;
  }

  std::string file_, text_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

void for_each_json_line(const std::string& file, const std::function<void(const nlohmann::json&, const std::string&)>& use) {
  const std::string text = read_utf8(file);
  int64_t line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view one = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = line_of(file, line);
    use(parse_json<ConfigError>(one, place), place);
  }
}

std::vector<TableRow> read_table(const std::string& file) {
  std::vector<TableRow> rows;
  TableReader reader(file);
  for (TableRow row; reader.next(row);) {
    ONESTEP_CHECK(ConfigError, rows.empty() || row.fields.size() == rows[0].fields.size(), row.place, ": has ",
                  row.fields.size(), row.fields.size() == 1 ? " field" : " fields", ", must have ", rows[0].fields.size(),
                  " as the first line");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace onestep::train
