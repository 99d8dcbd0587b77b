#pragma once
// The pictures of docs/attention.md.
#include <string>
#include <vector>

namespace onestep::book {

struct Picture {
  std::string name;  ///< Of its file, without `.svg`.
  std::string svg;
};

/// All of them, computed now.
std::vector<Picture> pictures();

}  // namespace onestep::book
