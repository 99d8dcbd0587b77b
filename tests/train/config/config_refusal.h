#pragma once
// Configs that must be refused.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support.h"
#include "train/config/config.h"

namespace onestep::testing {

const std::string kCopyTask = R"("data": {"kind": "task", "task": "copy"})";

/// The sentence with which the config of that text is refused; "" if it is not.
inline std::string config_refusal(const std::string& text, const std::vector<std::string>& sets = {}) {
  return refusal<ConfigError>([&] { train::parse_config(text, "run.json", sets); });
}

struct BadConfig {
  std::string text;
  std::string message;  ///< After `run.json`; as in expect_refusal().
};

inline void expect_refused(const std::vector<BadConfig>& configs) {
  for (const BadConfig& bad : configs) {
    CAPTURE(bad.text);
    expect_refusal(config_refusal(bad.text), "run.json" + bad.message);
  }
}

}  // namespace onestep::testing
