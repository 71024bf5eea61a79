// What is printed: tables, JSON, messages. Text that a container may have chosen cannot steer the
// terminal (SEC-65).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace wherry::cli {

// Control bytes, those of Unicode (C1) included, as \xNN; what is not UTF-8 as \xNN as well.
std::string harmless(std::string_view text);

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row);
  std::string text() const;  // columns aligned, two blanks between them, cells harmless

 private:
  std::vector<std::vector<std::string>> rows_;
};

// To stdout, all of it.
Result<> print(std::string_view text);
Result<> print_line(std::string_view text);
Result<> print_json(const Json& value);       // indented
Result<> print_json_line(const Json& value);  // one line

void print_warning(std::string_view text);  // "wherry: warning: ..." on stderr
void print_error(const Error& error);       // "wherry: ...", and the hint in parentheses below it

enum class Format { kTable, kJson };
Result<Format> format_of(const std::string& word);

std::string short_id(const std::string& id);          // the first 12 digits
std::string human_size(std::uint64_t bytes);          // "1.5 MB"
std::string age_of(const std::string& rfc3339_time);  // "3m", "" when it is no time

}  // namespace wherry::cli
