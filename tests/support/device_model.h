// What device rules mean, said as plainly as possible: an independent reference for the compiler in
// bpf/. It shares no header with it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wherry::test {

struct ModelRule {
  bool allow = false;
  char type = 'a';                      // 'a', 'b' or 'c'
  std::int64_t major = -1, minor = -1;  // -1: any
  std::string access;                   // of "rwm"
};

// Each letter of `access` is decided by the last rule that matches the device and has the letter;
// without such a rule it is denied. The whole is allowed when each letter is.
bool model_allows(const std::vector<ModelRule>& rules, char type, std::int64_t major,
                  std::int64_t minor, const std::string& access);

}  // namespace wherry::test
