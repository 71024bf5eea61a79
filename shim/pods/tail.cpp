#include "shim/pods/tail.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <deque>

#include "base/sys.h"

namespace wherry::shim {
namespace {
constexpr std::size_t kChunk = 256 * 1024;
constexpr Millis kWithoutInotify{100};
}  // namespace

Result<> LineFile::read(const std::function<Result<>(std::string_view)>& on_line) {
  const auto size = static_cast<std::uint64_t>(TRY(sys::fstat(file_.get(), "log")).st_size);
  if (size < at_) at_ = size;
  std::string text;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + kChunk);
    const ssize_t got =
        ::pread(file_.get(), text.data() + before, kChunk, static_cast<off_t>(at_ + before));
    if (got < 0 && errno != EINTR) return Error::sys("pread", "log");
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    std::size_t start = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
      TRY(on_line(std::string_view{text}.substr(start, end - start)));
      start = end + 1;
    }
    text.erase(0, start);
    at_ += start;
    if (got == 0) return {};
  }
}

Result<> LineFile::seek_to_last(unsigned count,
                                const std::function<bool(std::string_view)>& counts) {
  std::deque<std::uint64_t> starts{at_};  // of the counted lines, and of the next one
  std::uint64_t place = at_;
  TRY(read([&](std::string_view line) -> Result<> {
    place += line.size() + 1;
    if (!counts(line)) return {};
    starts.push_back(place);
    if (starts.size() > std::size_t{count} + 1) starts.pop_front();
    return {};
  }));
  at_ = count == 0 ? place : starts.front();
  return {};
}

ChangeWatch ChangeWatch::open() {
  ChangeWatch watch;
  watch.inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  return watch;
}

void ChangeWatch::add(const std::string& path) {
  if (inotify_ && ::inotify_add_watch(inotify_.get(), path.c_str(),
                                      IN_MODIFY | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF) < 0)
    inotify_.reset();
}

void ChangeWatch::wait(Millis most) {
  pollfd one{inotify_.get(), POLLIN, 0};
  const auto wait = inotify_ ? most : std::min(most, kWithoutInotify);
  if (::poll(&one, 1, static_cast<int>(wait.count())) <= 0) return;
  std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace wherry::shim
