#pragma once
// Errors of the whole project: one type per kind of cause, one sentence per message.
#include <sstream>
#include <stdexcept>
#include <string>

namespace onestep {

/// Base of every error the library throws; the text reads `place: what is wrong: values (hint)`.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct ShapeError : Error {  ///< Shapes, ranks or dims that do not fit.
  using Error::Error;
};
struct IndexError : ShapeError {  ///< A dim, or a position outside of what is indexed; a ShapeError to who does not ask.
  using ShapeError::ShapeError;
};
struct DTypeError : Error {  ///< An element type that the operation does not take.
  using Error::Error;
};
struct GradError : Error {  ///< Misuse of the recorded graph.
  using Error::Error;
};
struct ConfigError : Error {  ///< A config, argument or environment variable that cannot be used.
  using Error::Error;
};
struct IoError : Error {  ///< A file that is missing, unreadable or not what it claims to be.
  using Error::Error;
};
struct DivergedError : Error {  ///< A loss, gradient norm or parameter that is no finite number.
  using Error::Error;
};
struct InterruptedError : Error {  ///< Somebody asked to stop.
  using Error::Error;
};

/// Throws `E` with the parts streamed into one message.
template <class E, class... P>
[[noreturn]] void fail(const P&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw E(message.str());
}

}  // namespace onestep

/// Throws `E` with the parts streamed into one message unless `condition` holds. A macro, so that the parts are evaluated only
/// on failure and after the condition: checks on hot paths cost a branch, and `strerror(errno)` tells of the call that failed.
#define ONESTEP_CHECK(E, condition, ...) \
  do {                                   \
    if (!(condition)) [[unlikely]]       \
      ::onestep::fail<E>(__VA_ARGS__);   \
  } while (false)
