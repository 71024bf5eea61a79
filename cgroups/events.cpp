// What is done to all processes of a place at once, and what the kernel says of them.
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "cgroups/tree.h"

namespace wherry::cgroups {
namespace {

constexpr std::size_t kEventsLimit = 4096;

// Reads cgroup.events on `events` again and again until `key` is `wanted`. true: it was so before
// the deadline. The first read arms the descriptor: kernfs reports a change since the last read of
// it.
Result<bool> wait_for(int events, std::string_view key, std::uint64_t wanted, Deadline deadline) {
  while (true) {
    std::string text(kEventsLimit, '\0');
    if (::lseek(events, 0, SEEK_SET) < 0) return Error::sys("lseek", "cgroup.events");
    text.resize(TRY(sys::read(events, {text.data(), text.size()}, "cgroup.events")));
    if (field(text, key) == wanted) return true;
    if (deadline.expired()) return false;
    TRY(sys::poll_one(events, POLLPRI, deadline));
  }
}

}  // namespace

Result<UniqueFd> Place::open_events() const {
  auto events = sys::openat(unified_.self.get(), "cgroup.events", O_RDONLY);
  if (!events.ok()) return std::move(events).error().context(name_of(unified_));
  return events;
}

Result<> Place::kill() const {
  auto written = write_kernel_file(unified_.self.get(), "cgroup.kill", "1");
  if (written.ok()) return {};
  if (gone(written.error())) {
    // The directory is gone, or the kernel has no such file.
    const auto still_there = sys::fstatat(unified_.self.get(), "cgroup.procs");
    if (!still_there.ok()) return {};
    return Error::make(Code::kUnsupported, "cgroup.kill is missing: Linux 5.14 or later is needed");
  }
  return std::move(written).error().context(cat("kill cgroup ", in_quotes(path_)));
}

Result<> Place::freeze(Deadline deadline) const {
  const auto what = cat("freeze cgroup ", in_quotes(path_));
  const auto events = TRY_CTX(open_events(), what);
  TRY_CTX(write_kernel_file(unified_.self.get(), "cgroup.freeze", "1"), what);
  auto frozen = wait_for(events.get(), "frozen", 1, deadline);
  if (frozen.ok() && *frozen) return {};
  // Half frozen is worse than not frozen (REL-15).
  thaw().ignore("the first error is the one to tell");
  if (!frozen.ok()) return std::move(frozen).error().context(what);
  return Error::make(Code::kTimeout, cat(what, ": a process does not stop in time"))
      .hint("a process in uninterruptible sleep (state D) cannot be frozen");
}

Result<> Place::thaw() const {
  TRY_CTX(write_kernel_file(unified_.self.get(), "cgroup.freeze", "0"),
          cat("thaw cgroup ", in_quotes(path_)));
  return {};
}

Result<bool> Place::frozen() const {
  auto text = read_file(unified_.self.get(), "cgroup.events");
  if (text.ok()) return field(*text, "frozen") == 1;
  if (gone(text.error())) return false;
  return std::move(text).error();
}

Result<bool> Place::populated() const {
  auto text = read_file(unified_.self.get(), "cgroup.events");
  if (text.ok()) return field(*text, "populated") == 1;
  if (gone(text.error())) return false;
  return std::move(text).error();
}

Result<std::vector<pid_t>> Place::processes() const {
  std::vector<pid_t> all;
  std::vector<std::string> pending{"."};
  while (!pending.empty()) {
    const auto path = std::move(pending.back());
    pending.pop_back();
    auto look = [&]() -> Result<> {
      const auto dir = TRY(open_directory(unified_.self.get(), path));
      const auto pids = TRY(processes_in(dir.get()));
      all.insert(all.end(), pids.begin(), pids.end());
      for (const auto& child : TRY(subdirectories(dir.get())))
        pending.push_back(path == "." ? child : cat(path, "/", child));
      return {};
    };
    // A directory that went away meanwhile has no processes.
    if (auto looked = look(); !looked.ok() && !gone(looked.error()))
      return std::move(looked).error().context(cat("list cgroup ", in_quotes(path_)));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Result<> Place::wait_empty(Deadline deadline) const {
  const auto what = cat("wait for cgroup ", in_quotes(path_));
  auto events = open_events();
  if (!events.ok()) return gone(events.error()) ? Result<>{} : std::move(events).error();
  auto empty = wait_for(events->get(), "populated", 0, deadline);
  if (!empty.ok()) return gone(empty.error()) ? Result<>{} : std::move(empty).error().context(what);
  if (*empty) return {};
  return Error::make(Code::kTimeout, cat(what, ": still holds ", describe(TRY(processes()))));
}

}  // namespace wherry::cgroups
