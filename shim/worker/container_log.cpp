#include "shim/worker/container_log.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/sys.h"

namespace wherry::shim {
namespace {

constexpr std::array<std::string_view, 2> kStreamNames{"stdout", "stderr"};
constexpr std::size_t kChunk = 64 * 1024;

Result<UniqueFd> open_log(int dir, const std::string& name) {
  return sys::openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
}

#ifdef WHERRY_FAULT_POINTS
void pass(const char* name) {
  fault_point(name).ignore("only a kill is of interest here");
}
#else
void pass(const char*) {}
#endif

}  // namespace

Result<ContainerLog> ContainerLog::create(int log_dir, const std::string& file_name) {
  auto file = TRY(open_log(log_dir, file_name));
  TRY(sys::ftruncate(file.get(), 0, file_name));
  auto out = TRY(Spool::create("wherry-stdout"));
  auto err = TRY(Spool::create("wherry-stderr"));
  auto cursor = TRY(LogCursor::create());
  return ContainerLog{std::move(out), std::move(err), std::move(cursor), std::move(file)};
}

Result<ContainerLog> ContainerLog::adopt(Parts parts, int log_dir, const std::string& file_name) {
  auto out = TRY(Spool::adopt(std::move(parts.out)));
  auto err = TRY(Spool::adopt(std::move(parts.err)));
  auto cursor = TRY(LogCursor::adopt(std::move(parts.cursor)));
  auto file = TRY(open_log(log_dir, file_name));
  ContainerLog log{std::move(out), std::move(err), std::move(cursor), std::move(file)};
  TRY(sys::ftruncate(log.file_.get(), static_cast<off_t>(log.position_.log), file_name));
  return log;
}

bool ContainerLog::append(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::pwrite(file_.get(), text.data() + done, text.size() - done,
                                 static_cast<off_t>(position_.log + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      LOG(kWarning, "log: ", Error::sys("pwrite").message());
      // No half line may stay before the next one.
      sys::ftruncate(file_.get(), static_cast<off_t>(position_.log))
          .ignore("the next write overwrites it");
      return false;
    }
    done += static_cast<std::size_t>(put);
  }
  return true;
}

void ContainerLog::write_out(Stream stream, StreamEnd end) {
  const std::size_t i = index(stream);
  std::array<char, kChunk> chunk;
  while (true) {
    const auto got = spools_[i].read(position_.raw[i], chunk);
    if (!got.ok()) {
      LOG(kError, "log: ", got.error().message());
      return;
    }
    const bool all = position_.raw[i] + got.value() == spools_[i].size();
    const auto cri = format_cri({chunk.data(), got.value()}, kStreamNames[i], rfc3339_now(),
                                position_.open_line[i] != 0, all ? end : StreamEnd::kOpen);
    if (cri.text.empty()) return;
    LogPosition next = position_;
    next.raw[i] += cri.consumed;
    next.open_line[i] = cri.open_line ? 1 : 0;
    if (append(cri.text))
      next.log += cri.text.size();
    else
      next.dropped += cri.consumed;
    pass("log_commit");
    cursor_.commit(next);
    position_ = next;
    if (all && cri.consumed == got.value()) return;
  }
}

void ContainerLog::give_back(Stream stream, std::uint64_t wanted_from) {
  spools_[index(stream)].give_back(std::min(wanted_from, position_.raw[index(stream)]));
}

}  // namespace wherry::shim
