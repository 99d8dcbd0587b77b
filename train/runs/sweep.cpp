#include "train/runs/sweep.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "train/config/config_fields.h"
#include "train/run_folder.h"

namespace onestep::train {
namespace {

constexpr size_t kMostRuns = 1000;

/// The parts of a list between the commas outside brackets and strings.
std::vector<std::string> split_values(std::string_view list) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false, after_backslash = false;
  for (const char c : list) {
    if (c == '"' && !after_backslash) quoted = !quoted;
    after_backslash = quoted && c == '\\' && !after_backslash;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == ',' && depth <= 0 && !quoted)
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

/// What stands for the key in the name of a run: its last part, where no other axis ends in the same.
std::string short_key(const SweepAxis& axis, const std::vector<SweepAxis>& axes) {
  const auto last = [](const SweepAxis& each) { return each.key.substr(each.key.rfind('.') + 1); };
  const auto same = std::count_if(axes.begin(), axes.end(), [&](const SweepAxis& each) { return last(each) == last(axis); });
  return same == 1 ? last(axis) : axis.key;
}

/// A value as it may be in the name of a folder.
std::string name_part(std::string value) {
  for (char& c : value)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-' && c != '+') c = '_';
  return value;
}

void check_axes(const std::vector<SweepAxis>& axes) {
  std::set<std::string> keys;
  size_t runs = 1;
  for (const SweepAxis& axis : axes) {
    ONESTEP_CHECK(ConfigError, keys.insert(axis.key).second, "--grid: ", axis.key, " is given twice");
    runs *= axis.values.size();
    ONESTEP_CHECK(ConfigError, runs <= kMostRuns, "--grid: more than ", kMostRuns, " runs");
  }
}

/// What came of `--set KEY=` for the value of an axis gets the name of the option that had it.
void call_grid(std::string& text, const std::vector<SweepAxis>& axes) {
  const std::string set = "--set ";
  for (const SweepAxis& axis : axes)
    if (text.starts_with(set + axis.key + '=')) text.replace(0, set.size(), "--grid ");
}

/// load_config, where `sets` end with a value for each axis.
Config load_point(const std::string& path, const std::vector<std::string>& sets, const std::vector<SweepAxis>& axes) {
  try {
    Config config = load_config(path, sets);
    for (auto& [_, argument] : config.origin.sets) call_grid(argument, axes);
    return config;
  } catch (const ConfigError& error) {
    std::string text = error.what();
    call_grid(text, axes);
    throw ConfigError(text);
  }
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  ONESTEP_CHECK(ConfigError, equals != std::string::npos, "--grid ", printable(text),
                ": has no = (write --grid section.key=value,value)");
  SweepAxis axis{text.substr(0, equals), split_values(std::string_view(text).substr(equals + 1))};
  std::vector<std::string> known;
  for (const Field& field : config_fields()) known.push_back(field.path);
  const std::string meant = nearest(axis.key, known);
  ONESTEP_CHECK(ConfigError, find_field(axis.key) != nullptr, "--grid ", printable(text), ": unknown key ", printable(axis.key),
                did_you_mean(meant));
  for (const std::string& value : axis.values)
    ONESTEP_CHECK(ConfigError, !value.empty(), "--grid ", printable(text), ": a value is empty");
  return axis;
}

std::vector<SweepRun> sweep_runs(const std::string& config_path, const std::vector<std::string>& sets,
                                 const std::vector<SweepAxis>& axes) {
  check_axes(axes);
  std::vector<SweepRun> runs(1);
  for (const SweepAxis& axis : axes) {
    std::vector<SweepRun> longer;
    for (const SweepRun& run : runs) {
      for (const std::string& value : axis.values) {
        SweepRun& next = longer.emplace_back(run);
        if (!next.name.empty()) next.name += ',';
        next.name.append(short_key(axis, axes)).append("=").append(name_part(value));
        next.values.push_back(value);
      }
    }
    runs = std::move(longer);
  }
  std::set<std::string> names;
  for (SweepRun& run : runs) {
    ONESTEP_CHECK(ConfigError, names.insert(run.name).second, "--grid: two runs would be called ", run.name);
    std::vector<std::string> all = sets;
    for (size_t i = 0; i < axes.size(); ++i) all.push_back(axes[i].key + '=' + run.values[i]);
    run.config = load_point(config_path, all, axes);
  }
  return runs;
}

std::vector<std::string> changes(const std::filesystem::path& run, const Config& config) {
  const Config own = load_run_config(run);
  std::vector<std::string> sets;
  for (const std::string& path : config.origin.given) {
    const Field& field = *find_field(path);
    const std::string value = to_json(value_of(field, config));
    if (applies(field, config) && value != to_json(value_of(field, own))) sets.push_back(path + '=' + value);
  }
  return sets;
}

}  // namespace onestep::train
