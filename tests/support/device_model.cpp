#include "tests/support/device_model.h"

namespace wherry::test {

bool model_allows(const std::vector<ModelRule>& rules, char type, std::int64_t major,
                  std::int64_t minor, const std::string& access) {
  for (const char letter : access) {
    bool allowed = false;
    for (const auto& rule : rules) {
      const bool matches = (rule.type == 'a' || rule.type == type) &&
                           (rule.major == -1 || rule.major == major) &&
                           (rule.minor == -1 || rule.minor == minor) &&
                           rule.access.find(letter) != std::string::npos;
      if (matches) allowed = rule.allow;
    }
    if (!allowed) return false;
  }
  return true;
}

}  // namespace wherry::test
