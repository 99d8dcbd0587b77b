#pragma once
// Regular expressions on UTF-8, by PCRE2.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace onestep::train {

/// Unicode's White_Space, for a class of characters: `\s` of PCRE2 has U+180E, too, that of other libraries U+FEFF or U+001C.
#define ONESTEP_WHITE_SPACE R"(\t-\r\x{85}\p{Z})"

/// A compiled regular expression.
class Pattern {
 public:
  /// Throws ConfigError for what PCRE2 cannot read.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) = delete;

  /// Begin and end of the first match from `from` on in valid UTF-8, if there is one. Throws ConfigError where PCRE2 gives up.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

/// An expression as Oniguruma, which the tokenizers library uses, reads it: `\s` and `\S` are White_Space and what is not.
/// Throws ConfigError for `\S` in a class.
std::string from_oniguruma(std::string_view expression);

}  // namespace onestep::train
