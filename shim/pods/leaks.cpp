// Pods::leaks: everything of ours on the host that no living pod accounts for. The kernel is asked,
// not the records.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "bpf/device_filter.h"
#include "cgroups/cgroups.h"
#include "mount/table.h"
#include "shim/pods.h"
#include "shim/pods/store_paths.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/removal.h"

namespace wherry {
namespace {

using namespace shim;

constexpr Millis kLateWait{1'000};
constexpr int kLateNap = 20;  // ms

struct Known {
  std::set<std::string> recorded;  // there is a record
  std::set<std::string> alive;     // somebody keeps it
  std::set<std::string> ended;     // nobody does, and nobody has to
};

class Finder {
 public:
  Finder(const Places& places, Known known) : places_{places}, known_{std::move(known)} {}

  Json take() { return std::move(found_); }
  void pods();
  Result<> mounts();
  Result<> cgroups();
  Result<> processes();
  Result<> directories();
  Result<> names();
  Result<> loops();
  Result<> programs();

 private:
  void add(const char* kind, const std::string& what, const std::string& pod,
           const std::string& why) {
    found_.push_back({{"kind", kind}, {"what", what}, {"pod", pod}, {"why", why}});
  }
  bool ours(std::string_view path) const {
    return below(path, places_.root) || below(path, places_.state);
  }
  static bool below(std::string_view path, const std::string& top) {
    return path.size() > top.size() && path.substr(0, top.size()) == top && path[top.size()] == '/';
  }
  // The pod that a path below root or state belongs to, "" for none.
  std::string pod_of(std::string_view path) const;
  void cgroups_in(const std::string& mount_point, const std::string& hierarchy);
  void process(const std::string& pid);
  using Programs = std::map<std::uint32_t, std::set<std::string>>;  // the cgroups that it is on
  struct Stray {
    std::string pod, why;
  };
  std::optional<Stray> stray_program(const std::set<std::string>& groups) const;
  void attached_below(const std::string& path, Programs& programs);

  const Places& places_;
  Known known_;
  Json found_ = Json::array();
};

std::string Finder::pod_of(std::string_view path) const {
  for (const auto& top : {pods_path(places_.root), pods_path(places_.state)}) {
    if (!below(path, top)) continue;
    const auto rest = path.substr(top.size() + 1);
    return std::string{rest.substr(0, rest.find('/'))};
  }
  return {};
}

void Finder::pods() {
  for (const auto& id : known_.recorded)
    if (known_.alive.count(id) == 0 && known_.ended.count(id) == 0 && load_pod(places_, id).ok())
      add("pod", id, id, "it has not ended and its shim is gone: its containers may live on");
}

// No mount of a pod is ever in the host's mount namespace.
Result<> Finder::mounts() {
  for (const auto& entry : TRY(mount::read_table())) {
    const bool inside = ours(entry.target);
    const auto upper = entry.fs_options.find("upperdir=");
    const auto layer = upper == std::string::npos
                           ? std::string_view{}
                           : std::string_view{entry.fs_options}.substr(upper + 9);
    if (inside || ours(layer))
      add("mount", entry.target, pod_of(inside ? std::string_view{entry.target} : layer),
          cat("a mount of type ", entry.fstype, " in the host's namespace"));
  }
  return {};
}

void Finder::cgroups_in(const std::string& mount_point, const std::string& hierarchy) {
  const auto path = mount_point + places_.cgroup_parent;
  const auto dir = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) return;  // no pod was ever here
  const auto names = list_dir(dir.value().get());
  if (!names.ok()) return;
  for (const auto& name : names.value()) {
    const auto st = sys::fstatat(dir.value().get(), name);
    if (!st.ok() || !S_ISDIR(st.value().st_mode) || known_.alive.count(name) != 0) continue;
    add("cgroup", cat(path, "/", name), name,
        cat("in hierarchy '", hierarchy, "', of no living pod"));
  }
}

Result<> Finder::cgroups() {
  const auto hierarchies = TRY(cgroups::discover());
  cgroups_in(hierarchies.unified, "cgroup2");
  std::set<std::string> seen;
  for (const auto& [controller, mount_point] : hierarchies.v1)
    if (seen.insert(mount_point).second) cgroups_in(mount_point, controller);
  return {};
}

// Keepers and workers by the lock that they hold; anything else by the cgroup that it is in.
void Finder::process(const std::string& pid) {
  const auto proc = cat("/proc/", pid);
  const auto state = process_state(parse_int<pid_t>(pid).value_or(0));
  if (!state.ok() || state.value() == 'Z')
    return;  // dead: nothing of it is left but its parent's to read
  const auto groups = read_file_at(AT_FDCWD, proc + "/cgroup", 65536);
  if (!groups.ok()) return;
  for (const auto line : split(groups.value(), '\n')) {
    const auto at = line.find(cat(":", places_.cgroup_parent, "/"));
    if (at == std::string_view::npos) continue;
    const auto rest = line.substr(at + places_.cgroup_parent.size() + 2);
    const std::string id{rest.substr(0, rest.find('/'))};
    if (known_.alive.count(id) != 0) return;
    return add("process", cat("pid ", pid), id, "it is in the cgroup of no living pod");
  }
  const auto exe = sys::readlinkat(AT_FDCWD, proc + "/exe");
  if (!exe.ok() || (exe.value().find("wherry-keep") == std::string::npos &&
                    exe.value().find("wherry-shim") == std::string::npos))
    return;
  const auto fds = sys::openat(AT_FDCWD, proc + "/fd", O_RDONLY | O_DIRECTORY);
  if (!fds.ok()) return;
  const auto numbers = list_dir(fds.value().get());
  if (!numbers.ok()) return;
  bool of_this_place = false;
  for (const auto& number : numbers.value()) {
    const auto target = sys::readlinkat(fds.value().get(), number);
    if (!target.ok()) continue;
    of_this_place |= ours(target.value());
    if (target.value().find(kLockFile) == std::string::npos) continue;
    const auto id = pod_of(target.value());
    if (id.empty()) return;  // of another state directory, which is another installation's business
    if (known_.alive.count(id) == 0)
      add("process", cat("pid ", pid), id, "a shim whose pod is gone");
    return;
  }
  if (of_this_place) add("process", cat("pid ", pid), "", "a shim that keeps no pod");
}

// A shim that has just let go of its pod needs a moment to end. Only what stays is a leak.
Result<> Finder::processes() {
  const auto proc = TRY(sys::openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY));
  const auto deadline = Deadline::in(kLateWait);
  const Json before = found_;
  while (true) {
    for (const auto& name : TRY(list_dir(proc.get())))
      if (name.find_first_not_of("0123456789") == std::string::npos) process(name);
    if (found_.size() == before.size() || deadline.expired()) return {};
    found_ = before;
    ::poll(nullptr, 0, kLateNap);
  }
}

Result<> Finder::directories() {
  for (const auto& [top, what] : {std::pair{pods_path(places_.state), "state"},
                                  std::pair{pods_path(places_.root), "store"}}) {
    const auto dir = sys::openat(AT_FDCWD, top, O_RDONLY | O_DIRECTORY);
    if (!dir.ok()) continue;
    for (const auto& name : TRY(list_dir(dir.value().get())))
      if (known_.recorded.count(name) == 0 && known_.alive.count(name) == 0)
        add(what, cat(top, "/", name), name, "there is no record of such a pod");
  }
  for (const auto& id : known_.recorded)
    if (const auto pod = load_pod(places_, id); !pod.ok())
      add("store", pod_path(places_.root, id), id,
          cat("its record cannot be read: ", pod.error().message()));
    else if (const auto holder = id_of_name(places_, pod.value().ns, pod.value().name);
             holder.ok() && holder.value() != id)
      add("store", pod_path(places_.root, id), id,
          cat("its name '", pod.value().name, "' is not reserved"));
  return {};
}

Result<> Finder::names() {
  const auto top = cat(places_.root, "/", kLedgerDir, "/", kNamesDir);
  const auto dir = sys::openat(AT_FDCWD, top, O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) return {};
  for (const auto& ns : TRY(list_dir(dir.value().get()))) {
    const auto space = TRY(open_dir_at(dir.value().get(), ns));
    for (const auto& name : TRY(list_dir(space.get())))
      if (!TRY(id_of_name(places_, ns, name)))
        add("name", cat(top, "/", ns, "/", name), "", "the pod that had it is gone");
  }
  return {};
}

Result<> Finder::loops() {
  const auto dir = sys::openat(AT_FDCWD, "/sys/block", O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) return {};
  for (const auto& name : TRY(list_dir(dir.value().get()))) {
    if (name.rfind("loop", 0) != 0) continue;
    const auto file = read_file_at(dir.value().get(), cat(name, "/loop/backing_file"), 4096);
    if (!file.ok() || !ours(trim(file.value()))) continue;
    const auto id = pod_of(trim(file.value()));
    if (known_.alive.count(id) == 0)
      add("loop", "/dev/" + name, id, cat("bound to '", trim(file.value()), "'"));
  }
  return {};
}

void Finder::attached_below(const std::string& path, Programs& programs) {
  const auto top = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!top.ok()) return;
  const auto ask = [&](int group, const std::string& where) {
    if (const auto filters = bpf::query_device_filters(group); filters.ok())
      for (const auto& filter : filters.value()) programs[filter.id].insert(where);
  };
  ask(top.value().get(), "/");
  walk_tree(top.value().get(),
            [&](int parent, const std::string& name, const std::string& where,
                const struct stat& st) -> Result<> {
              if (!S_ISDIR(st.st_mode)) return {};
              if (const auto group = open_dir_at(parent, name); group.ok())
                ask(group.value().get(), where);
              return {};
            })
      .ignore("a group that goes away in between has no program any more");
}

// Nothing when somebody accounts for the program.
std::optional<Finder::Stray> Finder::stray_program(const std::set<std::string>& groups) const {
  if (groups.empty()) return Stray{"", "a device filter that is attached to no cgroup"};
  const auto parent = cat(places_.cgroup_parent.substr(1), "/");
  for (const auto& path : groups) {
    if (path.compare(0, parent.size(), parent) != 0) continue;
    const auto rest = path.substr(parent.size());
    auto id = rest.substr(0, rest.find('/'));
    if (known_.alive.count(id) == 0)
      return Stray{std::move(id), cat("a device filter on '/", path, "', of no living pod")};
  }
  return {};
}

// A program outlives its cgroup for a moment: the kernel lets go of it after a grace period. Only
// what stays is a leak.
Result<> Finder::programs() {
  const auto unified = TRY(cgroups::discover()).unified;
  const auto deadline = Deadline::in(kLateWait);
  std::map<std::uint32_t, Stray> stray;
  for (bool first = true; first || (!stray.empty() && !deadline.expired()); first = false) {
    if (!first) ::poll(nullptr, 0, kLateNap);
    const auto loaded = bpf::loaded_device_filters();
    if (!loaded.ok())
      return {};  // not permitted to look: nothing is said rather than something wrong
    Programs attached;
    attached_below(unified, attached);
    std::map<std::uint32_t, Stray> now;
    for (const auto id : loaded.value())
      if (auto found = stray_program(attached[id]); found && (first || stray.count(id) != 0))
        now.emplace(id, std::move(*found));
    stray = std::move(now);
  }
  for (const auto& [id, one] : stray) add("bpf", cat("program ", id), one.pod, one.why);
  return {};
}

}  // namespace

Result<Json> Pods::leaks() const {
  Known known;
  for (const auto& id : TRY(all_ids(places_))) {
    known.recorded.insert(id);
    const auto view = view_pod(places_, id);
    if (!view.ok()) continue;
    const auto& phase = view.value().status.phase;
    if (view.value().alive)
      known.alive.insert(id);
    else if (phase == "Succeeded" || phase == "Failed")
      known.ended.insert(id);
  }
  // A pod that is just being made or taken away is kept already, or still, by whoever holds its
  // lock.
  if (const auto state = sys::openat(AT_FDCWD, pods_path(places_.state), O_RDONLY | O_DIRECTORY);
      state.ok())
    for (const auto& name : TRY(list_dir(state.value().get()))) {
      const auto dir = open_dir_at(state.value().get(), name);
      if (!dir.ok()) continue;
      if (const auto held = is_locked_at(dir.value().get(), kLockFile); held.ok() && held.value())
        known.alive.insert(name);
    }
  Finder finder{places_, std::move(known)};
  finder.pods();
  TRY(finder.mounts());
  TRY(finder.cgroups());
  TRY(finder.processes());
  TRY(finder.directories());
  TRY(finder.names());
  TRY(finder.loops());
  TRY(finder.programs());
  return finder.take();
}

}  // namespace wherry
