#pragma once
// Errors of the whole project: one type per kind of cause, one sentence per message.
#include <initializer_list>
#include <ostream>
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
struct IndexError
    : ShapeError {  ///< A dim, or a position outside of what is indexed; a ShapeError to callers that make no difference.
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

/// What is streamed into a message: an object elsewhere, and how. Some hundred places fail with parts of all types, so that
/// what they have in common is one function for each type and one for all.
class MessagePart {
 public:
  template <class T>
  MessagePart(const T& part)
      : part_(&part), stream_([](std::ostream& out, const void* p) { out << *static_cast<const T*>(p); }) {}
  MessagePart(const char* const& text) : part_(text), stream_(stream_text) {}
  template <size_t N>
  MessagePart(const char (&text)[N]) : part_(text), stream_(stream_text) {}

  friend std::ostream& operator<<(std::ostream& out, const MessagePart& part) {
    part.stream_(out, part.part_);
    return out;
  }

 private:
  static void stream_text(std::ostream& out, const void* text);

  const void* part_;
  void (*stream_)(std::ostream& out, const void* part);
};

/// The parts streamed one after the other.
std::string message_of(std::initializer_list<MessagePart> parts);

/// Throws `E` with the message of the parts.
template <class E>
[[noreturn]] void fail_with(std::initializer_list<MessagePart> parts) {
  throw E(message_of(parts));
}
template <class E, class... P>
[[noreturn]] void fail(const P&... parts) {
  fail_with<E>({parts...});
}

}  // namespace onestep

/// Throws `E` with the parts streamed into one message unless `condition` holds. A macro, so that the parts are evaluated only
/// on failure and after the condition: checks on hot paths cost a branch, and `strerror(errno)` is that of the call that
/// failed.
#define ONESTEP_CHECK(E, condition, ...) \
  do {                                   \
    if (!(condition)) [[unlikely]]       \
      ::onestep::fail<E>(__VA_ARGS__);   \
  } while (false)
