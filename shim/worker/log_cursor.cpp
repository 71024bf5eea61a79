#include "shim/worker/log_cursor.h"

#include <sys/mman.h>

#include <atomic>

#include "base/sys.h"

namespace wherry::shim {

struct LogCursor::Slot {
  std::uint64_t sequence;  // 0: being written
  LogPosition position;
};

namespace {
constexpr std::size_t kPage = 4096;
}

Result<LogCursor> LogCursor::create() {
  auto page = TRY(sys::memfd_create("wherry-log-cursor", 0));
  TRY(sys::ftruncate(page.get(), kPage, "log cursor"));
  return map(std::move(page));
}

Result<LogCursor> LogCursor::adopt(UniqueFd page) {
  if (TRY(sys::fstat(page.get(), "log cursor")).st_size != static_cast<off_t>(kPage))
    return Error::make(Code::kProtocol, "the log cursor has a wrong size");
  return map(std::move(page));
}

Result<LogCursor> LogCursor::map(UniqueFd page) {
  void* memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
  if (memory == MAP_FAILED) return Error::sys("mmap", "log cursor");
  return LogCursor{std::move(page), static_cast<Slot*>(memory)};
}

LogCursor::LogCursor(LogCursor&& other) noexcept
    : page_{std::move(other.page_)}, slots_{std::exchange(other.slots_, nullptr)} {}

LogCursor::~LogCursor() {
  if (slots_ != nullptr) ::munmap(slots_, kPage);
}

std::size_t LogCursor::newest() const {
  return slots_[0].sequence >= slots_[1].sequence ? 0 : 1;
}

LogPosition LogCursor::load() const {
  return slots_[newest()].position;
}

void LogCursor::commit(const LogPosition& position) {
  const std::size_t old = newest();
  Slot& slot = slots_[1 - old];
  // Nobody else reads the page while we live; what counts is the order of the stores at the moment
  // of a kill, which is that of the program as long as the compiler keeps it.
  slot.sequence = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot.position = position;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot.sequence = slots_[old].sequence + 1;
}

}  // namespace wherry::shim
