#include "mount/table.h"

#include <libmount/libmount.h>

#include <memory>

#include "base/text.h"

namespace wherry::mount {
namespace {

struct Unref {
  void operator()(libmnt_table* table) const { ::mnt_unref_table(table); }
  void operator()(libmnt_iter* iterator) const { ::mnt_free_iter(iterator); }
};

std::string text(const char* value) {
  return value != nullptr ? value : "";
}

// The optional fields of mountinfo; none means private.
std::string propagation(libmnt_fs* fs) {
  std::string out;
  const auto fields = text(::mnt_fs_get_optional_fields(fs));
  for (const auto field : split(fields, ' ')) {
    if (field.empty() || field.starts_with("propagate_from:")) continue;
    if (!out.empty()) out += ',';
    out += field;
  }
  return out.empty() ? "private" : out;
}

MountEntry to_entry(libmnt_fs* fs) {
  MountEntry entry;
  entry.id = ::mnt_fs_get_id(fs);
  entry.parent = ::mnt_fs_get_parent_id(fs);
  entry.root = text(::mnt_fs_get_root(fs));
  entry.target = text(::mnt_fs_get_target(fs));
  entry.fstype = text(::mnt_fs_get_fstype(fs));
  entry.source = text(::mnt_fs_get_source(fs));
  entry.options = text(::mnt_fs_get_vfs_options(fs));
  entry.fs_options = text(::mnt_fs_get_fs_options(fs));
  entry.propagation = propagation(fs);
  return entry;
}

}  // namespace

Result<std::vector<MountEntry>> read_table(const std::string& process) {
  if (process != "self" && !parse_int<unsigned>(process))
    return Error::make(Code::kInvalid, cat(in_quotes(process), " is not a process"));
  const auto path = cat("/proc/", process, "/mountinfo");
  const std::unique_ptr<libmnt_table, Unref> table{::mnt_new_table()};
  const std::unique_ptr<libmnt_iter, Unref> iterator{::mnt_new_iter(MNT_ITER_FORWARD)};
  if (!table || !iterator) return Error::sys("mnt_new_table", path, ENOMEM);
  if (const int failed = ::mnt_table_parse_file(table.get(), path.c_str()); failed != 0)
    return Error::sys("read mounts", path, failed < 0 ? -failed : EINVAL);
  std::vector<MountEntry> entries;
  libmnt_fs* fs = nullptr;
  while (::mnt_table_next_fs(table.get(), iterator.get(), &fs) == 0)
    entries.push_back(to_entry(fs));
  return entries;
}

}  // namespace wherry::mount
