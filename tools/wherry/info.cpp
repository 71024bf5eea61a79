// version, info.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/capability.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "bpf/device_filter.h"
#include "cgroups/cgroups.h"
#include "runtime/image/store.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

bool has_word(const char* file, std::string_view word) {
  const auto text = read_file_at(AT_FDCWD, file, 65536);
  if (!text.ok()) return false;
  std::string padded = cat(" ", text.value(), " ");
  for (char& c : padded)
    if (c == '\n' || c == '\t') c = ' ';
  return padded.find(cat(" ", word, " ")) != std::string::npos;
}

// Files that only a cgroup below the root has.
bool groups_have(const std::string& unified, const char* file) {
  const auto top = sys::openat(AT_FDCWD, unified, O_RDONLY | O_DIRECTORY);
  if (!top.ok()) return false;
  const auto names = list_dir(top.value().get());
  if (!names.ok()) return false;
  return std::any_of(names.value().begin(), names.value().end(), [&](const std::string& name) {
    return sys::fstatat(top.value().get(), cat(name, "/", file)).ok();
  });
}

bool can_seal() {
  const auto memory = sys::memfd_create("probe", MFD_ALLOW_SEALING);
  return memory.ok() && sys::add_seals(memory.value().get(), F_SEAL_WRITE).ok();
}

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// The capabilities that the kernel knows and we cannot give.
Json lacking_capabilities() {
  const auto last = read_file_at(AT_FDCWD, "/proc/sys/kernel/cap_last_cap", 64);
  const auto status = read_file_at(AT_FDCWD, "/proc/self/status", 65536);
  if (!last.ok() || !status.ok()) return Json::array({"unknown"});
  const auto at = status.value().find("CapBnd:");
  const auto bits =
      at == std::string::npos
          ? std::nullopt
          : parse_int<std::uint64_t>(trim(std::string_view{status.value()}.substr(at + 7, 17)), 16);
  const auto highest = parse_int<unsigned>(trim(last.value()));
  if (!bits || !highest) return Json::array({"unknown"});
  Json out = Json::array();
  for (unsigned bit = 0; bit <= *highest; ++bit)
    if ((*bits >> bit & 1) == 0) out.push_back(capability_name(bit));
  return out;
}

Json cgroups_json(const cgroups::Hierarchies& found) {
  Json v1 = Json::object();
  for (const auto& [controller, where] : found.v1) v1[controller] = where;
  return {{"driver", found.driver == cgroups::Driver::kUnified ? "unified" : "hybrid"},
          {"unified", found.unified},
          {"unifiedControllers", found.unified_controllers},
          {"v1", v1}};
}

// Asked of the kernel, one by one; a version says little about a distribution's kernel.
Json features_json(const cgroups::Hierarchies& hierarchies) {
  return {{"seccomp", is_there("/proc/sys/kernel/seccomp/actions_avail")},
          {"deviceFilter", bpf::loaded_device_filters().ok()},
          {"noNewPrivileges", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0},
          {"sealedPrograms", can_seal()},
          {"cgroupKill", groups_have(hierarchies.unified, "cgroup.kill")},
          {"cgroupFreeze", groups_have(hierarchies.unified, "cgroup.freeze")},
          {"overlay", has_word("/proc/filesystems", "overlay")},
          {"userNamespaces", is_there("/proc/self/ns/user")},
          {"timeNamespaces", is_there("/proc/self/ns/time")},
          {"pressureStall", is_there("/proc/pressure/memory")},
          {"apparmor", is_there("/sys/module/apparmor/parameters/enabled")},
          {"selinux", is_there("/sys/fs/selinux/enforce")}};
}

Result<Json> counts_json(const Global& global) {
  std::size_t running = 0;
  const auto pods = TRY(TRY(Pods::open(global.places)).list());
  for (const auto& pod : pods)
    if (pod.phase == "Running") ++running;
  const auto images = TRY(TRY(image::Store::open(global.places.root)).list());
  return Json{{"pods", pods.size()}, {"running", running}, {"images", images.size()}};
}

void add_lines(const Json& value, const std::string& indent, std::string& out) {
  for (const auto& [key, member] : value.items()) {
    if (member.is_object()) {
      out += cat(indent, key, ":\n");
      add_lines(member, indent + "  ", out);
      continue;
    }
    std::string text;
    if (member.is_array())
      for (const auto& word : member) text += cat(text.empty() ? "" : " ", word.get<std::string>());
    else if (member.is_boolean())
      text = member.get<bool>() ? "yes" : "no";
    else
      text = member.is_string() ? member.get<std::string>() : dump_json(member);
    out += cat(indent, key, ": ", harmless(text.empty() ? "-" : text), "\n");
  }
}

}  // namespace

Result<int> version(const OutputOptions& options) {
  if (TRY(format_of(options.output)) == Format::kJson)
    TRY(print_json({{"version", WHERRY_VERSION}, {"ociVersion", "1.3.0"}}));
  else
    TRY(print_line("wherry " WHERRY_VERSION));
  return 0;
}

Result<int> info(const Global& global, const OutputOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto hierarchies = TRY(cgroups::discover());
  utsname system{};
  ::uname(&system);
  Json out{{"version", WHERRY_VERSION},
           {"kernel", system.release},
           {"machine", system.machine},
           {"cpus", ::sysconf(_SC_NPROCESSORS_ONLN)}};
  out["cgroups"] = cgroups_json(hierarchies);
  out["features"] = features_json(hierarchies);
  out["lackingCapabilities"] = lacking_capabilities();
  out["paths"] = {{"root", global.places.root},
                  {"state", global.places.state},
                  {"cgroupParent", global.places.cgroup_parent}};
  out["counts"] = TRY(counts_json(global));
  if (format == Format::kJson) {
    TRY(print_json(out));
    return 0;
  }
  std::string text;
  add_lines(out, "", text);
  TRY(print(text));
  return 0;
}

}  // namespace wherry::cli
