// The comments of the C++ headers, which python/docs.py gathers when this is built.
#include <unordered_map>

#include "python/src/op.h"

namespace onestep::python {

std::string_view doc_of(std::string_view name) {
  static const std::unordered_map<std::string_view, std::string_view> docs = {
#include "onestep_docs.h"
  };
  const auto found = docs.find(name);
  return found == docs.end() ? std::string_view() : found->second;
}

}  // namespace onestep::python
