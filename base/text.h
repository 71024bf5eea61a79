// Small text helpers that allocate once and never throw on input.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

namespace detail {
inline std::string_view piece(std::string_view text) {
  return text;
}
inline std::string_view piece(const std::string& text) {
  return text;
}
inline std::string_view piece(const char* text) {
  return text;
}
inline std::string piece(char c) {
  return std::string(1, c);
}
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, bool>) std::string piece(T number) {
  return std::to_string(number);
}
}  // namespace detail

// The parts one after another: cat("pid ", 7).
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (out.append(detail::piece(parts)), ...);
  return out;
}

// A number that fills the whole text, in the range of T; nothing else (no sign for unsigned, no
// blanks, no 0x).
template <std::integral T>
std::optional<T> parse_int(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator);  // keeps empty pieces
std::string_view trim(std::string_view text);  // blanks, tabs, line ends
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string hex(std::string_view bytes);       // lower case
std::string in_quotes(std::string_view text);  // 'text', control bytes as \xNN; for messages
bool valid_utf8(std::string_view text);
std::size_t valid_utf8_prefix(
    std::string_view text);  // bytes before the first that is not UTF-8; size() when all are
bool has_control(std::string_view text);  // any byte below 0x20, or 0x7f

}  // namespace wherry
