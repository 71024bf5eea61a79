#include "tools/wherry/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::cli {
namespace {

bool is_c1(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]) == 0xc2 && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
         static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

void escape(std::string& out, unsigned char byte) {
  fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
}

// Within a JSON text only strings hold bytes from 0x7f on, and there \u007f means the same.
std::string harmless_json(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x7f)
      out += "\\u007f";
    else if (is_c1(text, i))
      fmt::format_to(std::back_inserter(out), "\\u00{:02x}", static_cast<unsigned char>(text[++i]));
    else
      out += text[i];
  }
  return out;
}

// Characters, not bytes: an approximation that is right for everything but wide and combining ones.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto good = valid_utf8_prefix(text.substr(i));
    for (const auto end = i + good; i < end; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte < 0x20 || byte == 0x7f)
        escape(out, byte);
      else if (is_c1(text, i))
        escape(out, static_cast<unsigned char>(text[++i]));
      else
        out += text[i];
    }
    if (i < text.size()) escape(out, static_cast<unsigned char>(text[i++]));
  }
  return out;
}

void Table::add(std::vector<std::string> row) {
  for (auto& cell : row) cell = harmless(cell);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - width(row[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

Result<> print(std::string_view text) {
  return sys::write_all(1, text, "stdout");
}

Result<> print_line(std::string_view text) {
  return print(cat(text, "\n"));
}

Result<> print_json(const Json& value) {
  return print(harmless_json(dump_json_pretty(value)));
}

Result<> print_json_line(const Json& value) {
  return print_line(harmless_json(dump_json(value)));
}

void print_warning(std::string_view text) {
  sys::write_all(2, cat("wherry: warning: ", harmless(text), "\n"), "stderr")
      .ignore("there is nobody left to tell");
}

void print_error(const Error& error) {
  // A list of problems keeps its lines.
  std::string out;
  for (const auto line : split(error.message(), '\n'))
    out += cat(out.empty() ? "wherry: " : "  ", harmless(line), "\n");
  if (!error.hint().empty()) out += cat("  (", harmless(error.hint()), ")\n");
  sys::write_all(2, out, "stderr").ignore("there is nobody left to tell");
}

Result<Format> format_of(const std::string& word) {
  if (word == "table") return Format::kTable;
  if (word == "json") return Format::kJson;
  return Error::make(Code::kInvalid, cat("-o: ", in_quotes(word), " is neither table nor json"));
}

std::string short_id(const std::string& id) {
  return id.substr(0, 12);
}

std::string human_size(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string age_of(const std::string& rfc3339_time) {
  std::tm parts{};
  const char* end = ::strptime(rfc3339_time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return {};
  const auto seconds = std::max<std::int64_t>(0, ::time(nullptr) - ::timegm(&parts));
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

}  // namespace wherry::cli
