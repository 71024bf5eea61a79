#include "runtime/container/identity.h"

#include <fcntl.h>
#include <sys/capability.h>

#include <algorithm>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/container/container.h"
#include "runtime/init/credentials.h"

namespace wherry::container {
namespace {

constexpr std::size_t kLargestFile = 1U << 20;
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kMostGroups = 65536;         // NGROUPS_MAX
constexpr std::uint32_t kHighestId = 4294967294U;  // 2^32-1 means "no change" to setresuid(2)

// A file of the image: it may be a FIFO, a link to /dev/zero or ten gigabytes of holes (SEC-33).
Result<std::string> read_image_file(int rootfd, const std::string& path) {
  auto file = open_in_root(rootfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file.ok()) {
    if (file.error().sys_errno() == ENOENT || file.error().sys_errno() == ENOTDIR)
      return std::string{};
    return std::move(file).error();
  }
  if (!S_ISREG(TRY(sys::fstat(file->get(), path)).st_mode))
    return Error::make(Code::kInvalid, cat("'", path, "' of the root is not a regular file"));
  auto text = TRY(sys::read_to_end(file->get(), kLargestFile, path));
  for (const auto line : split(text, '\n'))
    if (line.size() > kLongestLine)
      return Error::make(Code::kInvalid, cat("'", path, "' of the root has a line of more than ",
                                             kLongestLine, " bytes"));
  return text;
}

struct PasswdEntry {
  std::string name, home;
  std::uint32_t uid = 0, gid = 0;
};

std::optional<PasswdEntry> parse_passwd(std::string_view line) {
  const auto fields = split(line, ':');
  if (fields.size() < 6 || fields[0].empty()) return std::nullopt;
  const auto uid = parse_int<std::uint32_t>(fields[2]), gid = parse_int<std::uint32_t>(fields[3]);
  if (!uid || !gid || *uid > kHighestId || *gid > kHighestId) return std::nullopt;
  return PasswdEntry{std::string{fields[0]}, std::string{fields[5]}, *uid, *gid};
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// All digits are a number and never looked up as a name, out of range an error (CVE-2026-30892: "-u
// 1" ran as 0).
Result<std::optional<std::uint32_t>> as_number(std::string_view text, std::string_view what) {
  if (!all_digits(text)) return std::optional<std::uint32_t>{};
  const auto number = parse_int<std::uint64_t>(text);
  if (!number || *number > kHighestId)
    return Error::make(Code::kInvalid,
                       cat(what, " ", in_quotes(text), " is out of range: 0 to ", kHighestId));
  return std::optional{static_cast<std::uint32_t>(*number)};
}

Result<std::optional<PasswdEntry>> find_user(int rootfd, const std::string& user,
                                             std::optional<std::uint32_t> number) {
  const auto text = TRY(read_image_file(rootfd, "etc/passwd"));
  for (const auto line : split(text, '\n')) {
    auto entry = parse_passwd(line);
    if (entry && (number ? entry->uid == *number : entry->name == user))
      return std::optional{std::move(*entry)};
  }
  return std::optional<PasswdEntry>{};
}

// Groups of the group file that list the user; or the number of the one that is called `group`.
Result<std::vector<std::uint32_t>> groups_of(int rootfd, const std::string& user) {
  const auto text = TRY(read_image_file(rootfd, "etc/group"));
  std::vector<std::uint32_t> found;
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const auto gid = parse_int<std::uint32_t>(fields[2]);
    const auto members = split(fields[3], ',');
    if (gid && *gid <= kHighestId &&
        std::find(members.begin(), members.end(), user) != members.end())
      found.push_back(*gid);
    if (found.size() > kMostGroups)
      return Error::make(Code::kInvalid, cat("user '", user, "' is in too many groups"));
  }
  return found;
}

Result<std::uint32_t> find_group(int rootfd, const std::string& group) {
  const auto text = TRY(read_image_file(rootfd, "etc/group"));
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3 || fields[0] != group) continue;
    if (const auto gid = parse_int<std::uint32_t>(fields[2]); gid && *gid <= kHighestId)
      return *gid;
  }
  return Error::make(Code::kNotFound,
                     cat("there is no group ", in_quotes(group), " in /etc/group of the root"));
}

}  // namespace

Result<std::uint64_t> capability_mask(const std::vector<std::string>& names) {
  std::uint64_t mask = 0;
  for (const auto& name : names) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    cap_value_t number = 0;
    if (::cap_from_name(lower.c_str(), &number) < 0)
      return Error::make(Code::kInvalid, cat("there is no capability ", in_quotes(name)));
    if (static_cast<unsigned>(number) > init::last_capability())
      return Error::make(Code::kUnsupported,
                         cat("this kernel has no capability ", in_quotes(name)));
    mask |= std::uint64_t{1} << number;
  }
  return mask;
}

std::vector<std::string> known_capabilities() {
  std::vector<std::string> names;
  for (unsigned number = 0; number <= init::last_capability(); ++number) {
    char* name = ::cap_to_name(static_cast<cap_value_t>(number));
    if (name == nullptr) continue;
    std::string upper = name;
    ::cap_free(name);
    if (!upper.starts_with("cap_")) continue;  // a number: libcap is older than the kernel
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    names.push_back(std::move(upper));
  }
  return names;
}

Result<init::CapabilitySets> capability_sets(const oci::Capabilities& capabilities) {
  init::CapabilitySets sets;
  sets.bounding = TRY(capability_mask(capabilities.bounding));
  sets.effective = TRY(capability_mask(capabilities.effective));
  sets.inheritable = TRY(capability_mask(capabilities.inheritable));
  sets.permitted = TRY(capability_mask(capabilities.permitted));
  // The kernel raises an ambient capability only when it is permitted and inheritable
  // (capabilities(7)); runc and crun leave the others out in silence, and so does the specification
  // allow.
  sets.ambient = TRY(capability_mask(capabilities.ambient)) & sets.permitted & sets.inheritable;
  return sets;
}

Result<ResolvedUser> resolve_user(int rootfd, const std::string& text) {
  if (has_control(text))
    return Error::make(Code::kInvalid, cat("user ", in_quotes(text), " has control characters"));
  const auto colon = text.find(':');
  const std::string user = text.substr(0, colon);
  const std::string group = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (group.find(':') != std::string::npos)
    return Error::make(Code::kInvalid,
                       cat("user ", in_quotes(text), " is not of the form user[:group]"));
  auto number = TRY(as_number(user, "user"));
  if (user.empty()) number = 0;
  const auto entry = TRY(find_user(rootfd, user, number));
  if (!entry && !number)
    return Error::make(Code::kNotFound,
                       cat("there is no user ", in_quotes(user), " in /etc/passwd of the root"));
  ResolvedUser resolved;
  resolved.uid = entry ? entry->uid : *number;
  resolved.gid = entry ? entry->gid : 0;
  // A line break in a home directory would become a second variable or line somewhere
  // (CVE-2022-4318).
  resolved.home = entry && !entry->home.empty() && !has_control(entry->home) ? entry->home : "/";
  if (entry) resolved.additional_gids = TRY(groups_of(rootfd, entry->name));
  if (group.empty()) return resolved;
  const auto group_number = TRY(as_number(group, "group"));
  resolved.gid = group_number ? *group_number : TRY(find_group(rootfd, group));
  resolved.additional_gids.clear();  // as docker and podman: a group that is given stands alone
  return resolved;
}

}  // namespace wherry::container
