#include "base/fd.h"

#include <unistd.h>

#include <cerrno>

namespace wherry {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    const int saved = errno;
    ::close(fd_);  // EINTR from close(2) leaves the descriptor closed on Linux: never retried
    errno = saved;
  }
  fd_ = fd;
}

}  // namespace wherry
