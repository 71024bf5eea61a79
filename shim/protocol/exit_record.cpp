#include "shim/protocol/exit_record.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "base/file.h"
#include "base/sys.h"

namespace wherry::shim {
namespace {

constexpr char kName[] = "exit.rec";
constexpr std::array<char, 8> kMagic{'w', 'e', 'x', 'i', 't', '0', '0', '1'};

struct Layout {
  std::array<char, 8> magic{};
  std::int32_t known = 0, code = 0, signal = 0, oom_killed = 0;
  std::int64_t time_ns = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Layout) == 40);

// FNV-1a: a torn write is to be seen, not an attack.
std::uint64_t checksum_of(Layout layout) {
  layout.checksum = 0;
  std::array<unsigned char, sizeof layout> bytes{};
  std::memcpy(bytes.data(), &layout, sizeof layout);
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const unsigned char byte : bytes) sum = (sum ^ byte) * 0x100000001b3ULL;
  return sum;
}

}  // namespace

Result<> prepare_exit_record(int record_dir) {
  const auto file =
      TRY(sys::openat(record_dir, kName, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  return sys::write_all(file.get(), std::string(sizeof(Layout), '\0'), kName);
}

Result<> write_exit_record(int record_dir, const ExitRecord& record, Sync sync) {
  if (TRY(read_exit_record(record_dir)).has_value()) return {};
  const auto file = TRY(sys::openat(record_dir, kName, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600));
  Layout layout;
  layout.magic = kMagic;
  layout.known = record.code.has_value() ? 1 : 0;
  layout.code = record.code.value_or(0);
  layout.signal = record.signal;
  layout.oom_killed = record.oom_killed ? 1 : 0;
  layout.time_ns = record.time_ns;
  layout.checksum = checksum_of(layout);
  std::array<char, sizeof layout> bytes{};
  std::memcpy(bytes.data(), &layout, sizeof layout);
  TRY(sys::write_all(file.get(), {bytes.data(), bytes.size()}, kName));
  return sync == Sync::kData ? sys::fdatasync(file.get(), kName) : Result<>{};
}

Result<std::optional<ExitRecord>> read_exit_record(int record_dir) {
  auto text = read_file_at(record_dir, kName, sizeof(Layout));
  if (!text.ok()) {
    // Too long is not ours, missing is not yet: neither says that the container ended.
    if (text.error().code() == Code::kNotFound || text.error().code() == Code::kInvalid)
      return std::optional<ExitRecord>{};
    return std::move(text).error();
  }
  Layout layout;
  if (text.value().size() != sizeof layout) return std::optional<ExitRecord>{};
  std::memcpy(&layout, text.value().data(), sizeof layout);
  if (layout.magic != kMagic || layout.checksum != checksum_of(layout))
    return std::optional<ExitRecord>{};
  ExitRecord record;
  if (layout.known != 0) record.code = layout.code;
  record.signal = layout.signal;
  record.oom_killed = layout.oom_killed != 0;
  record.time_ns = layout.time_ns;
  return std::optional<ExitRecord>{record};
}

}  // namespace wherry::shim
