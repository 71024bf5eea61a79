// What the keeper holds for the worker: named descriptors and exits. Fixed size, nothing is
// allocated.
#pragma once
#include "shim/protocol/keeper_messages.h"

namespace wherry::keeper {

struct Descriptor {
  char name[kNameSize];
  int fd;
};

class Descriptors {
 public:
  // Takes `fd` over; it is closed when there is no room.
  bool store(const char* name, int fd);
  void drop(const char* name);
  int find(const char* name) const;  // -1: there is none
  std::size_t size() const { return size_; }
  const Descriptor& at(std::size_t index) const { return entries_[index]; }

 private:
  void remove(std::size_t index);
  Descriptor entries_[kMostDescriptors];
  std::size_t size_ = 0;
};

class Exits {
 public:
  bool full() const { return size_ == kMostExits; }
  void add(const Message& exit);  // there must be room
  void acknowledge(std::uint64_t serial);
  void forget_sent() { sent_ = 0; }  // a new worker hears all of them
  const Message* next_unsent() const { return sent_ < size_ ? &entries_[sent_] : nullptr; }
  void mark_sent() { ++sent_; }

 private:
  Message entries_[kMostExits];  // oldest first; the first `sent_` were sent
  std::size_t size_ = 0, sent_ = 0;
  std::uint64_t last_serial_ = 0;
};

}  // namespace wherry::keeper
