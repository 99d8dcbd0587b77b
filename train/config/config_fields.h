#pragma once
// The table of a config's keys. One row says everything about a key.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/enum_names.h"
#include "train/config/config.h"

namespace onestep::train {

/// An enumeration's value, as the byte that it is, and the names of all.
struct Choice {
  unsigned char* value;
  std::span<const std::string_view> names;
};

/// Where a field's value lives; the alternative is its type.
using FieldValue = std::variant<bool*, int64_t*, double*, std::string*, Choice, std::array<double, 2>*, std::vector<int64_t>*,
                                std::vector<std::string>*>;

/// Holds where the field `path` applies and has one of `values` (names).
struct When {
  std::string path;
  std::vector<std::string> values;
};

struct Field {
  std::string path;  ///< model.d_model
  FieldValue (*value)(Config&) = nullptr;
  std::string doc;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool below_high = false;  ///< `high` itself is too much
  std::vector<std::string> choices;
  std::vector<When> when;                                ///< applies if one of them holds; empty: always
  std::string beside;                                    ///< a number, which must be above 0 for this field to apply
  std::vector<When> required;                            ///< has no default where one of them holds
  std::optional<double> usual;                           ///< the default for all kinds but those of `defaults`
  std::vector<std::pair<std::string, double>> defaults;  ///< value of the section's kind -> default
  std::string derived;                                   ///< what the default comes from, in words
  void (*derive)(Config&) = nullptr;                     ///< sets the default that comes from other fields
  std::string neutral;                                   ///< as JSON: where the field does not apply, it may say just this
  bool optional = false;                                 ///< a list or string that may be absent (empty)
  bool may_change = false;                               ///< on resume

  // What a row is written with. Not inline: there are some hundred rows.
  using Names = std::initializer_list<std::string_view>;
  Field& range(double from, double to) { return low = from, high = to, *this; }
  Field& at_least(double from) { return low = from, *this; }
  Field& from_to_below(double from, double to) { return low = from, high = to, below_high = true, *this; }
  Field& one_of(std::span<const std::string_view> values);
  Field& one_of(Names values) { return one_of(std::span(values.begin(), values.size())); }
  Field& applies_if(std::string_view selector, Names values);
  Field& required_if(std::string_view selector, Names values);
  Field& defaults_by_kind(double others, std::initializer_list<std::pair<std::string_view, double>> kinds);
  Field& defaults_to(std::string_view words, void (*set)(Config&));
  Field& derived_by(void (*set)(Config&)) { return derive = set, *this; }
  Field& only_beside(std::string_view number);
  Field& elsewhere_only(std::string_view json);
  Field& may_be_absent() { return optional = true, *this; }
  Field& changeable() { return may_change = true, *this; }

  std::string section() const;  ///< model, or model.lora within it; empty at the top level
  std::string key() const;      ///< d_model
  std::string pointer() const;  ///< /model/d_model
};

/// Every key, in the order of the resolved config. A field comes after those that its `when` names.
const std::vector<Field>& config_fields();

/// The names of the sections, in order; those within another after it.
const std::vector<std::string>& config_sections();

/// `/model/lora`: where a section is.
std::string section_pointer(const std::string& section);

/// The section that this one is within; empty for one at the top level.
std::string parent_section(const std::string& section);

/// The field of that path, or nullptr.
const Field* find_field(const std::string& path);

/// Whether one of the conditions holds, or there is none.
bool holds(const std::vector<When>& conditions, const Config& config);

/// Whether the field has a meaning in the config.
bool applies(const Field& field, const Config& config);

/// The value of a field, read only.
FieldValue value_of(const Field& field, const Config& config);
FieldValue value_of(const Field& field, Config&& config) = delete;  // it would not outlive the call

/// Its value in a Config nobody has touched; where that only stands for a default, see default_json.
FieldValue default_value(const Field& field);

/// Whether the value was neither given nor derived.
bool is_untouched(const Field& field, const Config& config);

/// The name that a field with choices has.
std::string_view chosen(const FieldValue& value);

/// `a whole number of at least 1`, `one of char, byte, word`: what a value must be.
std::string expected(const Field& field);

/// The same for one element of a list.
std::string expected_item(const Field& field);

/// The default as JSON.
std::string default_json(const Field& field);

/// The value as JSON; doubles with the fewest digits that read back to the same bits.
std::string to_json(const FieldValue& value);
std::string to_json(double value);

/// The default in words: `0.001 (rmsprop: 0.01)`, `required`, `none`, or what it follows from.
std::string default_words(const Field& field);

/// The checks that take more than one key; `config` has passed those of the table. Throws ConfigError.
void check_between_fields(const Config& config);

/// `model.attention = causal or multi_head; or model.kind = gpt`.
std::string describe(const std::vector<When>& conditions);

/// `a, b or c`.
std::string join_or(const std::vector<std::string>& words);

}  // namespace onestep::train
