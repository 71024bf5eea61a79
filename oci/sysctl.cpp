#include <algorithm>

#include "base/text.h"
#include "oci/config.h"

namespace wherry::oci {

std::optional<std::string> sysctl_path(std::string_view key) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  if (key.find_first_not_of(kLetters) != std::string_view::npos) return std::nullopt;
  std::string path{key};
  const auto first = path.find_first_of("./");
  if (first == std::string::npos) return std::nullopt;
  if (path[first] == '.')
    for (auto& c : path) c = c == '.' ? '/' : c == '/' ? '.' : c;
  for (const auto part : split(path, '/'))
    if (part.empty() || part == "." || part == "..") return std::nullopt;
  return path;
}

std::optional<NamespaceType> sysctl_namespace(std::string_view path) {
  // Linux: ipc/ipc_sysctl.c, ipc/mq_sysctl.c, kernel/utsname_sysctl.c; all of net/ is seen per
  // network namespace.
  constexpr std::string_view kIpc[] = {
      "kernel/msgmax",      "kernel/msgmnb",      "kernel/msgmni",      "kernel/sem",
      "kernel/shmall",      "kernel/shmmax",      "kernel/shmmni",      "kernel/shm_rmid_forced",
      "kernel/msg_next_id", "kernel/sem_next_id", "kernel/shm_next_id", "kernel/auto_msgmni"};
  if (path.starts_with("net/")) return NamespaceType::kNetwork;
  if (path.starts_with("fs/mqueue/") ||
      std::find(std::begin(kIpc), std::end(kIpc), path) != std::end(kIpc))
    return NamespaceType::kIpc;
  if (path == "kernel/hostname" || path == "kernel/domainname") return NamespaceType::kUts;
  return std::nullopt;
}

}  // namespace wherry::oci
