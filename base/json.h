// JSON documents of our own: records, replies, listings. nlohmann_json stands behind this header
// only; documents from outside (config.json, requests) are read by yajl in oci/ and shim/.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"

namespace wherry {

// Depth at most 64, duplicate keys refused, valid UTF-8 only; the error says line and column.
Result<Json> parse_json(std::string_view text, std::string_view what);
std::string dump_json(const Json& value);  // one line; bytes that are not UTF-8 become U+FFFD
std::string dump_json_pretty(const Json& value);  // indented by 2, with a line end

// A member of an object, or an error that names it: typed access without exceptions.
Result<std::string> json_string(const Json& object, const char* key);
Result<std::int64_t> json_int(const Json& object, const char* key);
// The same with a default for a missing member; a member of another type gives the default too.
std::string json_string_or(const Json& object, const char* key, std::string fallback);
std::int64_t json_int_or(const Json& object, const char* key, std::int64_t fallback);
bool json_bool_or(const Json& object, const char* key, bool fallback);

Json error_to_json(const Error& error);  // {code, message, step, syscall, path, errno, hint}
Error error_from_json(const Json& value);

}  // namespace wherry
