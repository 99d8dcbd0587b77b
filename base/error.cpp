#include "base/error.h"

#include <sstream>

namespace onestep {

void MessagePart::stream_text(std::ostream& out, const void* text) { out << static_cast<const char*>(text); }

std::string message_of(std::initializer_list<MessagePart> parts) {
  std::ostringstream message;
  for (const MessagePart& part : parts) message << part;
  return std::move(message).str();
}

}  // namespace onestep
