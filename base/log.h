// The log of a program: one line a message on a descriptor, with time and level. Library code logs
// at debug only.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace wherry {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };
enum class LogFormat : std::uint8_t {
  kText,
  kJson
};  // json: {"level","msg","time"}, as runc --log-format json

struct LogSink {
  int fd = 2;
  LogLevel least = LogLevel::kWarning;
  LogFormat format = LogFormat::kText;
};
void set_log_sink(const LogSink& sink);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

}  // namespace wherry

#define LOG(level, ...)                                                          \
  do {                                                                           \
    if (::wherry::log_enabled(::wherry::LogLevel::level))                        \
      ::wherry::log_line(::wherry::LogLevel::level, ::wherry::cat(__VA_ARGS__)); \
  } while (false)
