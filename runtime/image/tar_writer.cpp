#include "runtime/image/tar_writer.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/metadata.h"

namespace wherry::image {
namespace {

constexpr std::size_t kBlock = 512;

// The ustar header block (POSIX.1-1988), in the places of its fields.
struct Header {
  std::array<char, 100> name;
  std::array<char, 8> mode, uid, gid;
  std::array<char, 12> size, mtime;
  std::array<char, 8> checksum;
  char type;
  std::array<char, 100> linkname;
  std::array<char, 8> magic;
  std::array<char, 32> uname, gname;
  std::array<char, 8> major, minor;
  std::array<char, 155> prefix;
  std::array<char, 12> unused;
};
static_assert(sizeof(Header) == kBlock);

// Octal digits and a NUL; whether the number fits.
template <std::size_t N>
bool put_number(std::array<char, N>& field, std::uint64_t value) {
  for (std::size_t i = N - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
  field[N - 1] = '\0';
  return value == 0;
}

template <std::size_t N>
bool put_text(std::array<char, N>& field, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), N), field.begin());
  return text.size() <= N;
}

// "<length> key=value\n", where the length counts itself.
std::string record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length)
    length = std::to_string(length).size() + rest;
  return cat(length, " ", key, "=", value, "\n");
}

char type_of(const TarEntry& entry) {
  if (entry.hardlink) return '1';
  switch (entry.mode & S_IFMT) {
    case S_IFLNK:
      return '2';
    case S_IFCHR:
      return '3';
    case S_IFBLK:
      return '4';
    case S_IFDIR:
      return '5';
    case S_IFIFO:
      return '6';
    default:
      return '0';
  }
}

void seal(Header& header) {
  header.magic = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
  header.checksum.fill(' ');
  unsigned sum = 0;
  std::array<unsigned char, kBlock> bytes{};
  std::memcpy(bytes.data(), &header, kBlock);
  for (const auto byte : bytes) sum += byte;
  put_number(header.checksum, sum);
}

std::string_view bytes_of(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

// The header, and the pax records for what does not fit into it.
std::string fill(Header& header, const TarEntry& entry) {
  std::string records;
  const std::uint64_t size = S_ISREG(entry.mode) && !entry.hardlink ? entry.size : 0;
  if (!put_text(header.name, entry.path)) records += record("path", entry.path);
  if (!put_text(header.linkname, entry.linkname)) records += record("linkpath", entry.linkname);
  put_number(header.mode, entry.mode & 07777);
  if (!put_number(header.uid, entry.uid)) records += record("uid", std::to_string(entry.uid));
  if (!put_number(header.gid, entry.gid)) records += record("gid", std::to_string(entry.gid));
  if (!put_number(header.size, size)) records += record("size", std::to_string(size));
  // Of times before 1970 without the fraction: readers disagree on which way it counts.
  const std::int64_t seconds = entry.mtime.tv_sec;
  const bool fits = put_number(header.mtime, seconds < 0 ? 0 : static_cast<std::uint64_t>(seconds));
  if (seconds < 0) {
    records += record("mtime", std::to_string(seconds));
  } else if (!fits || entry.mtime.tv_nsec != 0) {
    auto fraction = std::to_string(entry.mtime.tv_nsec);
    fraction.insert(0, 9 - fraction.size(), '0');
    records += record("mtime", cat(seconds, ".", fraction));
  }
  put_number(header.major, major(entry.rdev));
  put_number(header.minor, minor(entry.rdev));
  for (const auto& [name, value] : entry.xattrs) records += record("SCHILY.xattr." + name, value);
  header.type = type_of(entry);
  return records;
}

}  // namespace

Result<> TarWriter::pad() {
  const auto over = written_ % kBlock;
  written_ = 0;
  if (over == 0) return {};
  return sys::write_all(fd_, std::string(kBlock - over, '\0'), "tar");
}

Result<> TarWriter::add(const TarEntry& entry) {
  TRY(pad());
  Header header{};
  if (const auto records = fill(header, entry); !records.empty()) {
    Header extended{};
    put_text(extended.name, "pax");
    put_number(extended.mode, 0644);
    put_number(extended.size, records.size());
    extended.type = 'x';
    seal(extended);
    TRY(sys::write_all(fd_, bytes_of(extended), "tar"));
    TRY(content(records));
    TRY(pad());
  }
  seal(header);
  return sys::write_all(fd_, bytes_of(header), "tar");
}

Result<> TarWriter::content(std::string_view bytes) {
  written_ += bytes.size();
  return sys::write_all(fd_, bytes, "tar");
}

Result<> TarWriter::close() {
  TRY(pad());
  return sys::write_all(fd_, std::string(2 * kBlock, '\0'), "tar");
}

namespace {

struct Packer {
  TarWriter writer;
  dev_t device = 0;
  std::map<ino_t, std::string> linked;  // first path of files that have several

  Result<> add(int parent, const std::string& name, const std::string& path, const struct stat& st);
  Result<> copy(int file, const TarEntry& entry);
};

Result<> Packer::copy(int file, const TarEntry& entry) {
  std::vector<char> buffer(1 << 17);
  std::uint64_t left = entry.size;
  while (left > 0) {
    const auto got = TRY(
        sys::read(file, {buffer.data(), std::min<std::size_t>(buffer.size(), left)}, entry.path));
    if (got == 0)
      return Error::make(Code::kState,
                         cat(in_quotes(entry.path), " has become shorter while it was read"));
    TRY(writer.content({buffer.data(), got}));
    left -= got;
  }
  return {};
}

Result<> Packer::add(int parent, const std::string& name, const std::string& path,
                     const struct stat& st) {
  if (name.starts_with(".wh."))
    return Error::make(Code::kInvalid, cat(in_quotes(path), " would be a whiteout in a layer"));
  if (st.st_dev != device)
    return Error::make(Code::kInvalid, cat(in_quotes(path), " is on another file system"));
  if (S_ISSOCK(st.st_mode)) return {};
  TarEntry entry;
  UniqueFd file;
  if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
    file = TRY(sys::openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    entry = TRY(metadata_of(file.get(), path));
  } else {
    entry.mode = st.st_mode;
    entry.uid = st.st_uid;
    entry.gid = st.st_gid;
    entry.mtime = st.st_mtim;
    entry.rdev = st.st_rdev;
    if (S_ISLNK(st.st_mode)) entry.linkname = TRY(sys::readlinkat(parent, name));
  }
  entry.path = S_ISDIR(st.st_mode) ? path + "/" : path;
  if (!S_ISDIR(st.st_mode) && st.st_nlink > 1) {
    const auto [first, is_new] = linked.emplace(st.st_ino, path);
    if (!is_new) {
      entry.hardlink = true;
      entry.linkname = first->second;
      entry.xattrs.clear();
      return writer.add(entry);
    }
  }
  TRY(writer.add(entry));
  return S_ISREG(entry.mode) ? copy(file.get(), entry) : Result<>{};
}

}  // namespace

Result<> pack_directory(int dir, int into) {
  const auto top = TRY(sys::openat(dir, ".", O_RDONLY | O_DIRECTORY));
  Packer packer{TarWriter{into}, TRY(sys::fstat(top.get())).st_dev, {}};
  TRY(packer.writer.add(TRY(metadata_of(top.get(), "./"))));
  TRY(walk_tree(top.get(),
                [&](int parent, const std::string& name, const std::string& path,
                    const struct stat& st) { return packer.add(parent, name, path, st); }));
  return packer.writer.close();
}

}  // namespace wherry::image
