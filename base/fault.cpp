#include "base/fault.h"

#ifdef WHERRY_FAULT_POINTS
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/text.h"

namespace wherry {
namespace {
int errno_of(std::string_view name) {
  static const std::map<std::string_view, int> kKnown = {
      {"EIO", EIO},     {"ENOSPC", ENOSPC}, {"EINTR", EINTR}, {"ENOMEM", ENOMEM},
      {"EPERM", EPERM}, {"EAGAIN", EAGAIN}, {"EBUSY", EBUSY}};
  const auto found = kKnown.find(name);
  return found == kKnown.end() ? EIO : found->second;
}
}  // namespace

Result<> fault_point(const char* name) {
  const char* plan = std::getenv("WHERRY_FAULT");
  if (plan == nullptr) return {};
  static std::map<std::string, int> passes;
  const int pass = ++passes[name];
  for (const auto entry : split(plan, ',')) {
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    auto where = entry.substr(0, equals);
    int wanted = 1;
    if (const auto at = where.find('@'); at != std::string_view::npos) {
      wanted = parse_int<int>(where.substr(at + 1)).value_or(1);
      where = where.substr(0, at);
    }
    if (where != name || pass != wanted) continue;
    const auto what = entry.substr(equals + 1);
    if (what == "kill") ::kill(::getpid(), SIGKILL);
    if (what.starts_with("error:")) return Error::sys("fault", name, errno_of(what.substr(6)));
  }
  return {};
}

}  // namespace wherry
#endif
