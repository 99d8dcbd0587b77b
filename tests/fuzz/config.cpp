// Configs: a text of JSON and arguments of --set after it, each begun by a NUL byte. Refused with ConfigError, or the same
// after being written out and read again.
#include "train/config/config.h"

#include "base/error.h"
#include "tests/fuzz/input.h"

using namespace onestep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const auto next = [&] {
    const size_t end = std::min(rest.find('\0'), rest.size());
    const std::string part(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
  };
  const std::string text = next();
  std::vector<std::string> sets;
  while (!rest.empty()) sets.push_back(next());
  try {
    const train::Config config = train::parse_config(text, "input", sets);
    fuzz::require(train::parse_config(train::resolved_json(config), "resolved") == config, "the resolved config is the same");
  } catch (const ConfigError& error) {
    fuzz::require(std::string(error.what()).find_first_of("\n\r\x1b") == std::string::npos, "the message is one line");
  }
  return 0;
}
