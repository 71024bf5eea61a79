#include "shim/keeper/table.h"

#include <string.h>
#include <unistd.h>

namespace wherry::keeper {

bool Descriptors::store(const char* name, int fd) {
  drop(name);
  if (size_ == kMostDescriptors) {
    ::close(fd);
    return false;
  }
  Descriptor& entry = entries_[size_++];
  ::strncpy(entry.name, name, kNameSize - 1);
  entry.name[kNameSize - 1] = '\0';
  entry.fd = fd;
  return true;
}

void Descriptors::remove(std::size_t index) {
  ::close(entries_[index].fd);
  ::memmove(&entries_[index], &entries_[index + 1], (size_ - index - 1) * sizeof entries_[0]);
  --size_;
}

void Descriptors::drop(const char* name) {
  const std::size_t length = ::strlen(name);
  const bool all_below = length != 0 && name[length - 1] == '/';
  for (std::size_t i = size_; i-- > 0;)
    if (all_below ? ::strncmp(entries_[i].name, name, length) == 0
                  : ::strcmp(entries_[i].name, name) == 0)
      remove(i);
}

int Descriptors::find(const char* name) const {
  for (std::size_t i = 0; i < size_; ++i)
    if (::strcmp(entries_[i].name, name) == 0) return entries_[i].fd;
  return -1;
}

void Exits::add(const Message& exit) {
  entries_[size_] = exit;
  entries_[size_++].serial = ++last_serial_;
}

void Exits::acknowledge(std::uint64_t serial) {
  for (std::size_t i = 0; i < size_; ++i) {
    if (entries_[i].serial != serial) continue;
    ::memmove(&entries_[i], &entries_[i + 1], (size_ - i - 1) * sizeof entries_[0]);
    --size_;
    if (i < sent_) --sent_;
    return;
  }
}

}  // namespace wherry::keeper
