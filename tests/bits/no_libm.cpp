// Preloaded into a program (LD_PRELOAD): a call of one of the C library's elementary functions ends it and says which one it
// was.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

[[noreturn]] void refuse(std::string_view function) {
  for (const std::string_view part : {std::string_view("libm: "), function, std::string_view("\n")})
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  std::abort();
}

}  // namespace

// By the names of the linker, since <cmath> declares them with other exceptions.
#define ONESTEP_REFUSE(function)                                     \
  extern "C" void onestep_no_##function() __asm__(#function);        \
  extern "C" void onestep_no_##function() { refuse(#function); }     \
  extern "C" void onestep_no_##function##f() __asm__(#function "f"); \
  extern "C" void onestep_no_##function##f() { refuse(#function "f"); }

ONESTEP_REFUSE(exp)
ONESTEP_REFUSE(exp2)
ONESTEP_REFUSE(expm1)
ONESTEP_REFUSE(log)
ONESTEP_REFUSE(log2)
ONESTEP_REFUSE(log10)
ONESTEP_REFUSE(log1p)
ONESTEP_REFUSE(pow)
ONESTEP_REFUSE(sin)
ONESTEP_REFUSE(cos)
ONESTEP_REFUSE(sincos)
ONESTEP_REFUSE(tan)
ONESTEP_REFUSE(sinh)
ONESTEP_REFUSE(cosh)
ONESTEP_REFUSE(tanh)
ONESTEP_REFUSE(erf)
ONESTEP_REFUSE(erfc)
ONESTEP_REFUSE(hypot)
ONESTEP_REFUSE(cbrt)
