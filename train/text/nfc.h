#pragma once
// Unicode's normalisation form C.
#include <string>
#include <string_view>

namespace onestep::train {

/// Valid UTF-8 in normalisation form C: taken apart canonically, combining marks in the order of their classes, put together
/// again (Unicode Standard Annex 15). Characters are those of Unicode 9, as in the tokenizers library; later ones stay as they
/// are.
std::string to_nfc(std::string_view text);

}  // namespace onestep::train
