// What a module exports to JavaScript (web/page/engine.js): text goes in and out as UTF-8 in the module's memory.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "autograd/kernels/isa.h"
#include "web/engine/methods.h"

namespace {

std::string& result() {  // of the last call
  static std::string text;
  return text;
}

}  // namespace

#define ONESTEP_EXPORT(NAME) extern "C" __attribute__((export_name(NAME)))

/// Memory for an argument; null if there is none.
ONESTEP_EXPORT("allocate") void* onestep_allocate(size_t bytes) { return std::malloc(bytes); }
ONESTEP_EXPORT("release") void onestep_release(void* memory) { std::free(memory); }

/// Calls a method; its result is at the address returned, result_size() bytes, until the next call.
ONESTEP_EXPORT("call")
const char* onestep_call(const char* method, size_t method_size, const char* arguments, size_t arguments_size) {
  result() = onestep::web::call(std::string_view(method, method_size), std::string_view(arguments, arguments_size));
  return result().data();
}
ONESTEP_EXPORT("result_size") size_t onestep_result_size() { return result().size(); }

/// Whether this machine can run the module's kernels.
ONESTEP_EXPORT("supported") bool onestep_supported() {
  using namespace onestep::kernels;
  return std::any_of(std::begin(kAllIsas), std::end(kAllIsas), isa_supported);
}
