#pragma once
// Names by their pattern.
#include <string_view>

namespace onestep {

/// Whether all of `text` has the form of `pattern`, in which * stands for any characters, none included, and ? for one.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace onestep
