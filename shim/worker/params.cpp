#include "shim/worker/params.h"

#include <array>
#include <string_view>

#include "base/json.h"
#include "base/text.h"

namespace wherry::shim {
namespace {

enum class Kind : std::uint8_t { kText, kTexts, kEnvironment, kFlag, kNumber, kCells };

struct Parameter {
  std::string_view name;
  Kind kind;
};

constexpr std::array kParameters = {
    Parameter{"container", Kind::kText},  Parameter{"signal", Kind::kText},
    Parameter{"grace", Kind::kNumber},    Parameter{"argv", Kind::kTexts},
    Parameter{"env", Kind::kEnvironment}, Parameter{"user", Kind::kText},
    Parameter{"cwd", Kind::kText},        Parameter{"tty", Kind::kFlag},
    Parameter{"rows", Kind::kCells},      Parameter{"columns", Kind::kCells},
};

// execve ends a string at its first NUL: what comes after it would be lost in silence.
bool is_text(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

bool all(const Json& list, bool (*right)(const Json&)) {
  if (!list.is_array()) return false;
  for (const auto& entry : list)
    if (!right(entry)) return false;
  return true;
}

bool is_assignment(const Json& value) {
  if (!is_text(value)) return false;
  const auto equals = value.get_ref<const std::string&>().find('=');
  return equals != std::string::npos && equals > 0;
}

bool is_count(const Json& value, std::int64_t most) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
         value.get<std::int64_t>() <= most;
}

// What it must be, or "" when it is.
std::string_view wanted(const Json& value, Kind kind) {
  constexpr std::int64_t kMostSeconds = 1'000'000'000;
  switch (kind) {
    case Kind::kText:
      return is_text(value) ? "" : "a string without NUL";
    case Kind::kTexts:
      return all(value, is_text) ? "" : "an array of strings without NUL";
    case Kind::kEnvironment:
      return all(value, is_assignment) ? "" : "an array of strings NAME=VALUE";
    case Kind::kFlag:
      return value.is_boolean() ? "" : "true or false";
    case Kind::kNumber:
      return is_count(value, kMostSeconds) ? "" : "a number of seconds, not negative";
    case Kind::kCells:
      return is_count(value, 65535) ? "" : "a number from 0 to 65535";
  }
  return "";
}

}  // namespace

Result<> check_params(const Json& params) {
  for (const auto& parameter : kParameters) {
    const auto found = params.find(parameter.name);
    if (found == params.end()) continue;
    if (const auto must_be = wanted(*found, parameter.kind); !must_be.empty())
      return Error::make(Code::kInvalid, cat("'", parameter.name, "' must be ", must_be));
  }
  return {};
}

}  // namespace wherry::shim
