#include "runtime/image/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace wherry::image {
namespace {

struct FreeArchive {
  void operator()(archive* a) const { ::archive_read_free(a); }
};
using ArchivePtr = std::unique_ptr<archive, FreeArchive>;

// Outside the C locale libarchive rewrites names from pax headers (to Unicode normal form C): other
// files than the image's author packed. In the C locale it hands the bytes on and warns when they
// are not ASCII.
class CLocale {
 public:
  CLocale() : c_{::newlocale(LC_CTYPE_MASK, "C", nullptr)}, before_{::uselocale(c_)} {}
  ~CLocale() {
    ::uselocale(before_);
    ::freelocale(c_);
  }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  locale_t c_, before_;
};

Error archive_failure(archive* a, const std::string& subject) {
  const char* text = ::archive_error_string(a);
  std::string why = text != nullptr ? text : "unreadable archive";
  // libarchive writes sentences.
  while (!why.empty() && (why.back() == '.' || why.back() == '\n')) why.pop_back();
  if (!why.empty() && why[0] >= 'A' && why[0] <= 'Z')
    why[0] = static_cast<char>(why[0] - 'A' + 'a');
  return Error::make(Code::kInvalid, cat("read archive ", in_quotes(subject), ": ", why));
}

bool is_charset_warning(archive* a) {
  const char* text = ::archive_error_string(a);
  return text != nullptr &&
         std::string_view{text}.find("to current locale") != std::string_view::npos;
}

}  // namespace

// Two libarchive readers, one behind the other: the first undoes the compression ("raw" format),
// the second parses tar from what comes out, and between them stand the diff id and the caps.
struct TarReader::State {
  std::string subject;
  TarLimits limits;
  ArchivePtr raw, tar;
  std::optional<Hasher> hasher;
  std::vector<char> buffer = std::vector<char>(std::size_t{1} << 17);
  std::uint64_t expanded = 0, entries = 0, file_bytes = 0;
  std::uint64_t zeros_at_end = 0;
  bool filled = false;           // the last block
  std::optional<Error> failure;  // of the first reader, met within the second's callback

  Result<std::string_view> pull();
  // What the last block lacks, once: umoci ends an archive with the last byte of the last file. The
  // archive stays as complete as its diff id or its end mark say, which these zeros do not count
  // for.
  std::string_view rest_of_block();
};

std::string_view TarReader::State::rest_of_block() {
  static constexpr std::array<char, 512> kZeros{};
  const auto over = expanded % kZeros.size();
  if (over == 0 || std::exchange(filled, true)) return {};
  return {kZeros.data(), kZeros.size() - over};
}

Result<std::string_view> TarReader::State::pull() {
  const la_ssize_t got = ::archive_read_data(raw.get(), buffer.data(), buffer.size());
  if (got < 0) return archive_failure(raw.get(), subject);
  const std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
  hasher->update(bytes);
  expanded += bytes.size();
  const auto last = bytes.find_last_not_of('\0');
  zeros_at_end =
      last == std::string_view::npos ? zeros_at_end + bytes.size() : bytes.size() - last - 1;
  const auto packed =
      static_cast<std::uint64_t>(std::max<la_int64_t>(::archive_filter_bytes(raw.get(), -1), 1));
  if (expanded > limits.expanded)
    return Error::make(Code::kInvalid, cat("archive ", in_quotes(subject), " unpacks to more than ",
                                           limits.expanded, " bytes"));
  if (expanded > limits.ratio_floor && expanded / packed > limits.ratio)
    return Error::make(Code::kInvalid, cat("archive ", in_quotes(subject), " unpacks to more than ",
                                           limits.ratio, " times its size"));
  return bytes;
}

TarReader::TarReader(std::unique_ptr<State> state) : state_{std::move(state)} {}
TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;
TarReader::~TarReader() = default;

Result<TarReader> TarReader::open(int fd, const std::string& subject, const TarLimits& limits) {
  auto state = std::make_unique<State>();
  state->subject = subject;
  state->limits = limits;
  state->hasher = TRY(Hasher::create());
  if (::lseek(fd, 0, SEEK_SET) < 0) return Error::sys("lseek", subject);

  state->raw.reset(::archive_read_new());
  archive* raw = state->raw.get();
  // By name, not "all": that would start programs of the host's for formats that are not built in.
  for (const auto support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                             archive_read_support_filter_xz, archive_read_support_filter_lzma,
                             archive_read_support_filter_lzip, archive_read_support_filter_zstd,
                             archive_read_support_filter_lz4, archive_read_support_filter_compress})
    support(raw);
  ::archive_read_support_format_raw(raw);
  archive_entry* whole = nullptr;
  if (::archive_read_open_fd(raw, fd, 1 << 16) != ARCHIVE_OK ||
      ::archive_read_next_header(raw, &whole) != ARCHIVE_OK)
    return archive_failure(raw, subject);

  state->tar.reset(::archive_read_new());
  archive* tar = state->tar.get();
  ::archive_read_support_format_tar(tar);
  const auto read = [](archive* a, void* self, const void** into) -> la_ssize_t {
    auto& own = *static_cast<State*>(self);
    auto bytes = own.pull();
    if (!bytes.ok()) {
      own.failure = std::move(bytes).error();
      ::archive_set_error(a, EIO, "unreadable stream");
      return -1;
    }
    if (bytes->empty()) bytes = own.rest_of_block();
    *into = bytes->data();
    return static_cast<la_ssize_t>(bytes->size());
  };
  const CLocale locale;
  if (::archive_read_open2(tar, state.get(), nullptr, read, nullptr, nullptr) != ARCHIVE_OK) {
    if (state->failure) return std::move(*state->failure);
    return archive_failure(tar, subject);
  }
  return TarReader{std::move(state)};
}

Result<std::optional<TarEntry>> TarReader::next() {
  auto& state = *state_;
  archive_entry* entry = nullptr;
  int status = ARCHIVE_OK;
  {
    const CLocale locale;
    status = ::archive_read_next_header(state.tar.get(), &entry);
  }
  if (state.failure) return std::move(*std::exchange(state.failure, std::nullopt));
  if (status == ARCHIVE_EOF) return std::optional<TarEntry>{};
  if (status != ARCHIVE_OK && !(status == ARCHIVE_WARN && is_charset_warning(state.tar.get())))
    return archive_failure(state.tar.get(), state.subject);
  if (++state.entries > state.limits.entries)
    return Error::make(Code::kInvalid, cat("archive ", in_quotes(state.subject), " has more than ",
                                           state.limits.entries, " entries"));

  TarEntry out;
  const char* path = ::archive_entry_pathname(entry);
  if (path == nullptr)
    return Error::make(Code::kInvalid,
                       cat("archive ", in_quotes(state.subject), " has an entry without a name"));
  out.path = path;
  if (const char* link = ::archive_entry_hardlink(entry)) {
    out.hardlink = true;
    out.linkname = link;
  } else if (const char* target = ::archive_entry_symlink(entry)) {
    out.linkname = target;
  }
  out.mode =
      (out.hardlink ? 0 : ::archive_entry_filetype(entry)) | (::archive_entry_perm(entry) & 07777);
  const auto uid = ::archive_entry_uid(entry), gid = ::archive_entry_gid(entry);
  // 2^32-1 means "leave it" to chown(2).
  if (uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
    return Error::make(Code::kInvalid,
                       cat("archive entry ", in_quotes(out.path), " has an owner out of range"));
  out.uid = static_cast<uid_t>(uid);
  out.gid = static_cast<gid_t>(gid);
  const auto size = ::archive_entry_size(entry);
  if (size < 0)
    return Error::make(Code::kInvalid,
                       cat("archive entry ", in_quotes(out.path), " has a negative size"));
  out.size = static_cast<std::uint64_t>(size);
  state.file_bytes += out.size;
  if (out.size > state.limits.expanded || state.file_bytes > state.limits.expanded)
    return Error::make(Code::kInvalid, cat("the files of archive ", in_quotes(state.subject),
                                           " have more than ", state.limits.expanded, " bytes"));
  out.mtime = {::archive_entry_mtime(entry), ::archive_entry_mtime_nsec(entry)};
  out.rdev = ::archive_entry_rdev(entry);
  ::archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t length = 0;
  while (::archive_entry_xattr_next(entry, &name, &value, &length) == ARCHIVE_OK)
    out.xattrs.emplace_back(name, std::string{static_cast<const char*>(value), length});
  return std::optional<TarEntry>{std::move(out)};
}

Result<std::optional<TarReader::Block>> TarReader::next_block() {
  auto& state = *state_;
  const void* data = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  const int status = ::archive_read_data_block(state.tar.get(), &data, &size, &offset);
  if (state.failure) return std::move(*std::exchange(state.failure, std::nullopt));
  if (status == ARCHIVE_EOF) return std::optional<Block>{};
  if (status != ARCHIVE_OK) return archive_failure(state.tar.get(), state.subject);
  if (offset < 0)
    return Error::make(Code::kInvalid,
                       cat("archive ", in_quotes(state.subject), " has a sparse map out of range"));
  return std::optional<Block>{
      Block{{static_cast<const char*>(data), size}, static_cast<std::uint64_t>(offset)}};
}

Result<TarReader::Summary> TarReader::finish() {
  constexpr std::uint64_t kMark = 1024;  // two blocks of zeros (pax(1), "ustar Interchange Format")
  while (!TRY(state_->pull()).empty()) continue;
  Summary summary;
  summary.closed_by_mark = state_->zeros_at_end >= kMark;
  summary.diff_id = std::move(*state_->hasher).finish();
  return summary;
}

}  // namespace wherry::image
