#include "base/capability.h"

#include <array>
#include <string_view>

#include "base/text.h"

namespace wherry {
namespace {

// capabilities(7), by number.
constexpr std::array<std::string_view, kCapabilityCount> kCapabilities{"CHOWN",
                                                                       "DAC_OVERRIDE",
                                                                       "DAC_READ_SEARCH",
                                                                       "FOWNER",
                                                                       "FSETID",
                                                                       "KILL",
                                                                       "SETGID",
                                                                       "SETUID",
                                                                       "SETPCAP",
                                                                       "LINUX_IMMUTABLE",
                                                                       "NET_BIND_SERVICE",
                                                                       "NET_BROADCAST",
                                                                       "NET_ADMIN",
                                                                       "NET_RAW",
                                                                       "IPC_LOCK",
                                                                       "IPC_OWNER",
                                                                       "SYS_MODULE",
                                                                       "SYS_RAWIO",
                                                                       "SYS_CHROOT",
                                                                       "SYS_PTRACE",
                                                                       "SYS_PACCT",
                                                                       "SYS_ADMIN",
                                                                       "SYS_BOOT",
                                                                       "SYS_NICE",
                                                                       "SYS_RESOURCE",
                                                                       "SYS_TIME",
                                                                       "SYS_TTY_CONFIG",
                                                                       "MKNOD",
                                                                       "LEASE",
                                                                       "AUDIT_WRITE",
                                                                       "AUDIT_CONTROL",
                                                                       "SETFCAP",
                                                                       "MAC_OVERRIDE",
                                                                       "MAC_ADMIN",
                                                                       "SYSLOG",
                                                                       "WAKE_ALARM",
                                                                       "BLOCK_SUSPEND",
                                                                       "AUDIT_READ",
                                                                       "PERFMON",
                                                                       "BPF",
                                                                       "CHECKPOINT_RESTORE"};

}  // namespace

std::string capability_name(unsigned number) {
  return number < kCapabilityCount ? cat("CAP_", kCapabilities[number])
                                   : cat("capability ", number);
}

}  // namespace wherry
