#include "base/id.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/result.h"
#include "base/text.h"

namespace wherry {

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got = ::getrandom(raw.data() + have, bytes - have, 0);
    CHECK(got > 0 || errno == EINTR, "getrandom(2) cannot fail here (Linux 3.17)");
    have += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return hex(raw);
}

}  // namespace wherry
