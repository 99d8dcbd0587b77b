#include "train/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/utf8.h"

namespace onestep::train {

struct Pattern::Code {
  explicit Code(pcre2_code* compiled) : code(compiled), match(pcre2_match_data_create(1, nullptr)) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }

  pcre2_code* code;
  pcre2_match_data* match;
};

Pattern::Pattern(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &offset, nullptr);
  ONESTEP_CHECK(ConfigError, code != nullptr, "tokenizer: PCRE2 cannot read the pattern ", quote(expression), " (error ", error,
                " at byte ", offset, ")");
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT, pcre2_match interprets
  code_ = std::make_unique<Code>(code);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

std::optional<std::pair<size_t, size_t>> Pattern::find(std::string_view text, size_t from) const {
  const int groups = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK,
                                 code_->match, nullptr);
  if (groups == PCRE2_ERROR_NOMATCH) return std::nullopt;
  ONESTEP_CHECK(ConfigError, groups >= 0, "tokenizer: PCRE2 failed with error ", groups);
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(code_->match);
  return std::pair(ends[0], ends[1]);
}

std::string from_oniguruma(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i], next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && (next == 's' || next == 'S')) {
      ONESTEP_CHECK(ConfigError, !in_class || next == 's', "tokenizer: \\S in a class is not supported: ", quote(expression));
      out += in_class ? ONESTEP_WHITE_SPACE : next == 's' ? "[" ONESTEP_WHITE_SPACE "]" : "[^" ONESTEP_WHITE_SPACE "]";
      ++i;
      continue;
    }
    out += c;
    if (c == '\\' && i + 1 < expression.size()) out += expression[++i];
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
  }
  return out;
}

}  // namespace onestep::train
