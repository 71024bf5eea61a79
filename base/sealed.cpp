#include "base/sealed.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/sys.h"
#include "base/text.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020  // Linux 6.3
#endif

namespace wherry {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

bool is_sealed(int fd) {
  const auto seals = sys::get_seals(fd);
  return seals.ok() && (seals.value() & kSeals) == kSeals;
}

// MFD_EXEC keeps vm.memfd_noexec=1 from making it non-executable; older kernels do not know the
// flag (EINVAL).
Result<UniqueFd> executable_memfd(const std::string& name) {
  auto fd = sys::memfd_create(name, MFD_ALLOW_SEALING | MFD_EXEC);
  if (!fd.ok() && fd.error().sys_errno() == EINVAL)
    return sys::memfd_create(name, MFD_ALLOW_SEALING);
  return fd;
}

// A file of an overlay that is read-only for good (tools/wherry-oci/view.c), directly at the root
// of its mount: seen from no namespace, its path is "/" and its name.
bool is_view(int file) {
  struct statfs fs {};
  if (::fstatfs(file, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC) return false;
  if ((fs.f_flags & ST_RDONLY) == 0) return false;
  const auto path = sys::readlinkat(AT_FDCWD, "/proc/self/exe");
  return path.ok() && path.value().rfind('/') == 0;
}

}  // namespace

Result<UniqueFd> seal_program(int file, const std::string& name) {
  const auto st = TRY(sys::fstat(file, name));
  auto copy = TRY(executable_memfd(name));
  off_t at = 0;
  while (at < st.st_size) {
    const ssize_t moved =
        ::sendfile(copy.get(), file, &at, static_cast<std::size_t>(st.st_size - at));
    if (moved < 0 && errno != EINTR) return Error::sys("sendfile", name);
    if (moved == 0) return Error::sys("sendfile (the file became shorter)", name, EIO);
  }
  TRY(sys::fchmod(copy.get(), 0555, name));
  if (!sys::add_seals(copy.get(), kSeals | F_SEAL_EXEC).ok())
    TRY(sys::add_seals(copy.get(), kSeals));
  if (!is_sealed(copy.get()))
    return Error::make(Code::kUnsupported, cat("'", name, "' could not be sealed in memory"));
  return copy;
}

bool runs_sealed() {
  const auto self = sys::openat(AT_FDCWD, "/proc/self/exe", O_RDONLY);
  return self.ok() && (is_sealed(self.value().get()) || is_view(self.value().get()));
}

Result<std::string> build_id(int file) {
  std::array<char, 4096> head{};
  const ssize_t got = ::pread(file, head.data(), head.size(), 0);
  if (got < 0) return Error::sys("pread", "ELF header");
  Elf64_Ehdr elf{};
  if (static_cast<std::size_t>(got) < sizeof elf) return std::string{};
  std::memcpy(&elf, head.data(), sizeof elf);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return std::string{};
  for (std::size_t i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const std::size_t at = elf.e_phoff + i * sizeof segment;
    if (at + sizeof segment > static_cast<std::size_t>(got)) break;
    std::memcpy(&segment, head.data() + at, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    std::size_t note_at = segment.p_offset;
    const std::size_t end = segment.p_offset + segment.p_filesz;
    while (note_at + sizeof(Elf64_Nhdr) <= end && end <= static_cast<std::size_t>(got)) {
      Elf64_Nhdr note{};
      std::memcpy(&note, head.data() + note_at, sizeof note);
      const std::size_t name = note_at + sizeof note;
      const std::size_t text = name + ((note.n_namesz + 3U) & ~3U);
      if (text + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(head.data() + name, "GNU", 4) == 0)
        return hex({head.data() + text, note.n_descsz});
      note_at = text + ((note.n_descsz + 3U) & ~3U);
    }
  }
  return std::string{};
}

Result<> reexec_sealed(char* const* argv, char* const* env) {
  if (runs_sealed()) return {};
  const auto self = TRY(sys::openat(AT_FDCWD, "/proc/self/exe", O_RDONLY));
  const auto copy = TRY_CTX(seal_program(self.get(), "wherry"), "seal own program");
  ::syscall(SYS_execveat, copy.get(), "", argv, env, AT_EMPTY_PATH);
  return Error::sys("execveat", "sealed copy of own program");
}

}  // namespace wherry
