#pragma once
// JSON from untrusted files: nlohmann's parser with a SAX handler that refuses what the parser alone accepts. Only sources
// include this: the JSON library is no part of the public headers.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace onestep {

/// Of configs, summaries and other JSON that people write.
constexpr int64_t kMaxJsonBytes = 1 << 20;

/// Containers may nest this deep.
inline constexpr int kMaxJsonDepth = 64;

/// Bytes of memory that the values of a file may take unless somebody asks for more: a value takes up to 16 times its text.
inline constexpr size_t kMaxJsonMemory = size_t{48} << 20;
/// What a string takes of them.
inline size_t json_string_memory(std::string_view text) { return 64 + text.size(); }

/// Parses one JSON value (RFC 8259). Refused with `E` (ConfigError or IoError): text that is not UTF-8 or holds a NUL byte, any
/// syntax error, a number no double can hold (`SOURCE:LINE:COLUMN: ...`), a key twice in one object (`SOURCE: /pointer: ...`),
/// more than kMaxJsonDepth levels, values that would take more than `max_memory` (`SOURCE: ...`).
template <class E>
nlohmann::json parse_json(std::string_view text, const std::string& source, size_t max_memory = kMaxJsonMemory);

/// read_file (IoError), then parse_json. An empty file is refused, too.
template <class E>
nlohmann::json read_json(const std::string& path, int64_t max_bytes);

/// `pointer` + "/" + `key`, escaped as RFC 6901 says and fit to be printed: ("/model", "a/b") -> "/model/a~1b".
std::string json_pointer(const std::string& pointer, std::string_view key);

/// A value for messages: compact JSON, cut after about 60 bytes.
std::string brief(const nlohmann::json& value);

}  // namespace onestep
