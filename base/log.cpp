#include "base/log.h"

#include <unistd.h>

#include <array>

#include "base/clock.h"

namespace wherry {
namespace {

LogSink g_sink;

constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};

std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out.push_back('\\');
    if (byte < 0x20)
      out += "\\u00" + hex({&c, 1});
    else
      out.push_back(c);
  }
  return out;
}

}  // namespace

void set_log_sink(const LogSink& sink) {
  g_sink = sink;
}

bool log_enabled(LogLevel level) {
  return level >= g_sink.least;
}

void log_line(LogLevel level, std::string_view text) {
  const auto name = kNames[static_cast<std::size_t>(level)];
  const auto line = g_sink.format == LogFormat::kJson
                        ? cat(R"({"level":")", name, R"(","msg":")", json_escaped(text),
                              R"(","time":")", rfc3339_now(), "\"}\n")
                        : cat(rfc3339_now(), " ", name, " ", text, "\n");
  // A log that cannot be written has nowhere to say so.
  [[maybe_unused]] const auto written = ::write(g_sink.fd, line.data(), line.size());
}

}  // namespace wherry
