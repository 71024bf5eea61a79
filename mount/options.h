// The option words of an OCI mount (config.md, "Mounts"; mount(8)) as what the new mount API takes.
// Pure.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "oci/spec.h"

namespace wherry::mount {

struct Attributes {  // MOUNT_ATTR_* for mount_setattr(2)
  std::uint64_t set = 0, clear = 0;
  bool empty() const { return set == 0 && clear == 0; }
};

struct Options {
  bool bind = false, recursive = false;  // "bind", "rbind"
  Attributes attributes;                 // of this mount alone
  Attributes tree_attributes;            // of the whole tree: the "rro" family (Linux 5.12)
  unsigned long propagation = 0;  // MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE; 0: not asked
  bool propagation_recursive = false;
  std::vector<std::pair<std::string, std::string>>
      data;              // for fsconfig: key and value, value "" for a flag
  bool copy_up = false;  // "tmpcopyup"
  bool idmap = false, idmap_recursive = false;
};

// The words that are not the file system's own: flags, propagation, bind and its kin. Sorted.
std::vector<std::string> option_words();
// kInvalid names the word: "ro" together with "rw" is decided by the later one, as mount(8) does; a
// superblock option on a bind mount is an error, since the kernel would not apply it (runc #3990).
Result<Options> parse_options(const oci::Mount& mount);
Result<std::pair<unsigned long, bool>> parse_propagation(
    const std::string& word);  // MS_* flag, recursive

}  // namespace wherry::mount
