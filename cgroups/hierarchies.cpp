#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "cgroups/tree.h"

namespace wherry::cgroups {
namespace {

constexpr std::size_t kMountinfoLimit = 64U << 20;

// What cgroups(7) calls controllers; the other words among the mount options are options.
constexpr std::array<std::string_view, 14> kControllers = {
    "cpu",   "cpuacct",    "cpuset",   "memory",  "devices", "freezer", "net_cls",
    "blkio", "perf_event", "net_prio", "hugetlb", "pids",    "rdma",    "misc"};

// Blank, tab, line end and backslash stand as \ooo in mountinfo (proc(5)).
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      if (const auto byte = parse_int<unsigned>(text.substr(i + 1, 3), 8); byte && *byte < 256) {
        out.push_back(static_cast<char>(*byte));
        i += 3;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

// One line "ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [TAGS] - TYPE SOURCE SUPEROPTIONS".
void take_line(std::string_view line, Hierarchies& found) {
  const auto dash = line.find(" - cgroup");
  if (dash == std::string_view::npos) return;
  const auto left = split(line.substr(0, dash), ' ');
  const auto right = split(line.substr(dash + 3), ' ');
  // A bind mount of a part of the tree is not the hierarchy.
  if (left.size() < 6 || right.size() < 3 || left[3] != "/") return;
  if (right[0] == "cgroup2") {
    if (found.unified.empty()) found.unified = unescape(left[4]);
  } else if (right[0] == "cgroup") {
    for (const auto word : split(right.back(), ','))
      if (std::find(kControllers.begin(), kControllers.end(), word) != kControllers.end() ||
          word.starts_with("name="))
        found.v1.try_emplace(std::string{word}, unescape(left[4]));
  }
}

}  // namespace

Result<Hierarchies> parse_mountinfo(std::string_view text) {
  Hierarchies found;
  for (const auto line : split(text, '\n')) take_line(line, found);
  if (found.unified.empty())
    return Error::make(Code::kUnsupported, "no cgroup2 file system is mounted")
        .hint("mount -t cgroup2 none /sys/fs/cgroup (or /sys/fs/cgroup/unified beside v1)");
  // A named hierarchy has no controller: systemd's own does not make a host hybrid.
  for (const auto& [controller, mount_point] : found.v1)
    if (!controller.starts_with("name=")) found.driver = Driver::kHybrid;
  return found;
}

Result<Hierarchies> discover() {
  const auto text = TRY(read_file_at(AT_FDCWD, "/proc/self/mountinfo", kMountinfoLimit));
  auto found = TRY_CTX(parse_mountinfo(text), "find the cgroup hierarchies");
  const auto root = TRY(open_root(found.unified, Version::kV2));
  const auto controllers = TRY(read_file(root.get(), "cgroup.controllers"));
  for (const auto name : split(trim(controllers), ' '))
    if (!name.empty()) found.unified_controllers.emplace_back(name);
  return found;
}

Result<> check_path(const std::string& path) {
  constexpr std::size_t kNameMax = 255;
  auto bad = [&](std::string_view why) {
    return Error::make(Code::kInvalid, cat("cgroup path ", in_quotes(path), ": ", why));
  };
  if (!path.starts_with('/')) return bad("does not start with '/'");
  for (const auto part : split(std::string_view{path}.substr(1), '/')) {
    if (part.empty()) return bad("has an empty component");
    if (part == "." || part == "..") return bad(cat("component '", part, "' is not allowed"));
    if (part.size() > kNameMax) return bad("has a component of more than 255 bytes");
    if (has_control(part)) return bad("has a control character");
  }
  return {};
}

Result<UniqueFd> open_root(const std::string& mount_point, Version version) {
  auto root = TRY(sys::openat(AT_FDCWD, mount_point, O_PATH | O_DIRECTORY));
  struct statfs fs {};
  if (::fstatfs(root.get(), &fs) < 0) return Error::sys("fstatfs", mount_point);
  // Something else may have been mounted over it since.
  if (fs.f_type != (version == Version::kV2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
    return Error::make(Code::kUnsupported, cat("'", mount_point, "' is no cgroup file system of v",
                                               version == Version::kV2 ? 2 : 1));
  return root;
}

}  // namespace wherry::cgroups
