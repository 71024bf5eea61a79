#include "shim/worker/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/sys.h"

namespace wherry::shim {
namespace {

constexpr std::size_t kPiece = 64 * 1024;       // what a pipe holds unless told otherwise
constexpr std::uint64_t kGiveBack = 64 * 1024;  // a hole of less is not worth the call
constexpr std::uint64_t kPage = 4096;

}  // namespace

Result<Spool> Spool::create(const std::string& name) {
  return Spool{TRY(sys::memfd_create(name, 0)), 0};
}

Result<Spool> Spool::adopt(UniqueFd file) {
  const auto st = TRY(sys::fstat(file.get(), "spool"));
  return Spool{std::move(file), static_cast<std::uint64_t>(st.st_size)};
}

Result<Spool::Pulled> Spool::pull(int pipe, std::size_t most) {
  auto outcome = Pulled::kNothing;
  for (std::size_t moved = 0; moved < most;) {
    auto at = static_cast<off64_t>(size_);
    const ssize_t got =
        ::splice(pipe, nullptr, file_.get(), &at, kPiece, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return outcome;
    if (got < 0) return Error::sys("splice", "into the spool");
    if (got == 0) return Pulled::kEnd;
    size_ += static_cast<std::uint64_t>(got);
    moved += static_cast<std::size_t>(got);
    outcome = Pulled::kSome;
  }
  return outcome;
}

Result<Spool::Pulled> Spool::pull_terminal(int master, int pipe_in, int pipe_out,
                                           std::size_t most) {
  auto outcome = Pulled::kNothing;
  for (std::size_t moved = 0; moved < most;) {
    // The pipe first: a worker before us may have left something in it.
    if (TRY(pull(pipe_out, kPiece)) == Pulled::kSome) outcome = Pulled::kSome;
    const ssize_t got = ::splice(master, nullptr, pipe_in, nullptr, kPiece, SPLICE_F_NONBLOCK);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return outcome;
    if (got == 0 || (got < 0 && errno == EIO)) return Pulled::kEnd;
    if (got < 0) return Error::sys("splice", "from the terminal");
    moved += static_cast<std::size_t>(got);
    outcome = Pulled::kSome;
  }
  return outcome;
}

Result<std::size_t> Spool::read(std::uint64_t from, std::span<char> into) const {
  while (true) {
    const ssize_t got = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(from));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return Error::sys("pread", "spool");
  }
}

std::uint64_t Spool::first_kept() const {
  const off_t at = ::lseek(file_.get(), 0, SEEK_DATA);
  return at < 0 ? size_ : static_cast<std::uint64_t>(at);
}

void Spool::give_back(std::uint64_t up_to) {
  const std::uint64_t whole = up_to / kPage * kPage;
  if (whole < given_back_ + kGiveBack) return;
  // It fails on no memory file; if it did, the memory would come back at the end.
  if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(given_back_), static_cast<off_t>(whole - given_back_)) == 0)
    given_back_ = whole;
}

}  // namespace wherry::shim
