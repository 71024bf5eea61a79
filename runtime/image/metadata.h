// Owner, mode, times and extended attributes of an object that was just made, set through its
// descriptor so that no link put in its place can lead elsewhere (CVE-2021-32760, CVE-2021-41089).
#pragma once
#include "base/result.h"
#include "runtime/image/tar_reader.h"

namespace wherry::image {

// `fd` may be O_PATH; `entry.mode` must carry the type of the object.
Result<> set_metadata(int fd, const TarEntry& entry);
Result<> set_mtime(int fd, const timespec& mtime, const std::string& subject);
// What `fd` (not O_PATH) has, for an object to be made like it. overlayfs's own attributes are left
// out.
Result<TarEntry> metadata_of(int fd, const std::string& path);

// Attributes of an archive: kept, left out because they belong to the policy of the machine that
// wrote them (security.selinux and its kin), or refused because overlayfs would obey them.
enum class XattrRule : std::uint8_t { kKeep, kDrop, kRefuse };
XattrRule xattr_rule(std::string_view name);

}  // namespace wherry::image
