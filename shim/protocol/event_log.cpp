#include "shim/protocol/event_log.h"

#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::shim {
namespace {
constexpr char kLockFile[] = "events.lock";  // its content is the last number given out
constexpr Millis kLockWait{1'000};
constexpr std::size_t kDigits = 20;
constexpr char kRemoved[] = "pod.removed";
}  // namespace

Result<std::uint64_t> append_event(int dir, const Json& event) {
  const auto lock =
      TRY(lock_file_at(dir, kLockFile, LockKind::kExclusive, Deadline::in(kLockWait)));
  std::array<char, kDigits> digits{};
  const ssize_t got = ::pread(lock.get(), digits.data(), digits.size(), 0);
  const auto last =
      got > 0 ? parse_int<std::uint64_t>(trim({digits.data(), static_cast<std::size_t>(got)}))
              : std::nullopt;
  const std::uint64_t seq = last.value_or(0) + 1;

  Json line{{"seq", seq}, {"time", rfc3339_now()}};
  line.update(event);
  auto file = TRY(sys::openat(dir, kEventFile, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  if (static_cast<std::size_t>(TRY(sys::fstat(file.get(), kEventFile)).st_size) > kEventFileLimit) {
    TRY(sys::renameat2(dir, kEventFile, dir, kOlderEventFile));
    file = TRY(sys::openat(dir, kEventFile, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  }
  // The number first: one that is skipped is a gap, one that is given twice a lie.
  std::string number = std::to_string(seq);
  number.resize(kDigits, ' ');
  if (::pwrite(lock.get(), number.data(), number.size(), 0) != static_cast<ssize_t>(number.size()))
    return Error::sys("pwrite", kLockFile);
  TRY(sys::write_all(file.get(), dump_json(line) + "\n", kEventFile));
  return seq;
}

void read_events(int dir, const std::function<void(const Json&)>& on_event) {
  for (const char* name : {kOlderEventFile, kEventFile}) {
    const auto text = read_file_at(dir, name, 2 * kEventFileLimit);
    if (!text.ok()) continue;
    for (const auto line : split(text.value(), '\n'))
      if (const auto event = parse_json(line, "event"); event.ok() && event.value().is_object())
        on_event(event.value());
  }
}

Result<> tell_removed(int dir, const std::string& id, const std::string& ns,
                      const std::string& name) {
  TRY(append_event(dir, {{"type", kRemoved}, {"pod", id}, {"name", name}, {"namespace", ns}}));
  return {};
}

Result<> tell_removed_once(int dir, const std::string& id, const std::string& ns,
                           const std::string& name) {
  bool known = false;
  for (const char* file : {kEventFile, kOlderEventFile}) {
    const auto text = read_file_at(dir, file, 2 * kEventFileLimit);
    if (!text.ok()) continue;
    // By its text: a log of megabytes is not parsed for one line.
    for (const auto line : split(text.value(), '\n')) {
      if (line.find(id) == std::string_view::npos) continue;
      if (line.find(kRemoved) != std::string_view::npos) return {};
      known = true;
    }
  }
  return known ? tell_removed(dir, id, ns, name) : Result<>{};
}

}  // namespace wherry::shim
