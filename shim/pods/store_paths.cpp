#include "shim/pods/store_paths.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/removal.h"

namespace wherry::shim {
namespace {

constexpr Millis kLedgerWait{10'000};
constexpr std::size_t kLongestRecord = 16 * 1024 * 1024;
constexpr std::size_t kIdLength = 64;

bool is_id(const std::string& name) {
  return name.size() == kIdLength &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool exists(const std::string& path) {
  return sys::fstatat(AT_FDCWD, path).ok();
}

Result<Json> read_json(const std::string& path) {
  return parse_json(TRY(read_file_at(AT_FDCWD, path, kLongestRecord)), path);
}

ContainerStatus unknown_container(const pod::Container& container, bool init) {
  ContainerStatus status;
  status.name = container.name;
  status.image = container.image;
  status.init = init;
  status.state = "unknown";
  return status;
}

// The name that the ledger has for a pod whose record cannot be read; "" and "" when it has none.
std::pair<std::string, std::string> name_in_ledger(const Places& places, const std::string& id) {
  const auto top = cat(places.root, "/", kLedgerDir, "/", kNamesDir);
  const auto names = sys::openat(AT_FDCWD, top, O_RDONLY | O_DIRECTORY);
  const auto spaces = names.ok() ? list_dir(names.value().get()) : std::vector<std::string>{};
  if (!spaces.ok()) return {};
  for (const auto& ns : spaces.value()) {
    const auto space = open_dir_at(names.value().get(), ns);
    const auto entries = space.ok() ? list_dir(space.value().get()) : std::vector<std::string>{};
    if (!entries.ok()) continue;
    for (const auto& name : entries.value()) {
      const auto holder = read_file_at(space.value().get(), name, 128);
      if (holder.ok() && trim(holder.value()) == id) return {ns, name};
    }
  }
  return {};
}

// Nothing but the record is left of it, as after a reboot; or not even that can be read.
PodStatus status_from_record(const Places& places, const std::string& id) {
  const auto read = load_pod(places, id);
  PodStatus status;
  status.id = id;
  status.phase = "Unknown";
  if (!read.ok()) {
    std::tie(status.ns, status.name) = name_in_ledger(places, id);
    status.reason = cat("its record cannot be read: ", read.error().message());
    return status;
  }
  const auto& pod = read.value();
  status.name = pod.name;
  status.ns = pod.ns;
  status.uid = pod.uid;
  status.created = pod.created;
  status.labels = pod.labels;
  status.annotations = pod.annotations;
  for (const auto& container : pod.init_containers)
    status.containers.push_back(unknown_container(container, true));
  for (const auto& container : pod.containers)
    status.containers.push_back(unknown_container(container, false));
  return status;
}

// What the worker wrote last is no longer so when nobody keeps the pod.
void mark_unkept(PodStatus& status, bool has_state) {
  status.sandbox = has_state ? "NOTREADY" : "NOTFOUND";
  status.keeper_pid = status.shim_pid = 0;
  status.ready = false;
  if (status.phase == "Succeeded" || status.phase == "Failed") return;
  status.phase = "Unknown";
  status.reason =
      has_state ? "its shim is gone" : "it was not kept over the last start of the host";
  for (auto& container : status.containers) {
    if (container.state == "exited" || container.state == "waiting") continue;
    container.state = "unknown";
    container.ready = false;
    container.pid = 0;
  }
}

// A status that cannot be read is none: the record, or the ledger, tells less but the truth.
bool take_status(const std::string& path, PodView& view) {
  const auto json = read_json(path);
  if (!json.ok()) return false;
  auto status = pod_status_from_json(json.value());
  if (!status.ok()) return false;
  view.status = std::move(status).value();
  if (const auto shims = json.value().find("shims"); shims != json.value().end())
    view.shims = shims_from_json(*shims);
  return true;
}

}  // namespace

std::string pods_path(const std::string& top) {
  return cat(top, "/", kPodsDir);
}
std::string pod_path(const std::string& top, const std::string& id) {
  return cat(top, "/", kPodsDir, "/", id);
}
std::string pod_cgroup(const Places& places, const std::string& id) {
  return cat(places.cgroup_parent, "/", id);
}

Result<> check_name(const std::string& what, const std::string& name) {
  constexpr std::size_t kLongest = 253;  // of a DNS name, which Kubernetes takes
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (name.empty() || name.size() > kLongest || !std::all_of(name.begin(), name.end(), good) ||
      name.front() == '.' || name.front() == '-')
    return Error::make(Code::kInvalid, cat(what, " ", in_quotes(name),
                                           " must be 1 to 253 letters, digits, '-', '_' or '.', "
                                           "and begin with a letter or digit"));
  return {};
}

Result<> reserve_name(const Places& places, const pod::Pod& pod,
                      const std::function<Result<>()>& keep) {
  const auto ledger = TRY(open_private_dir(cat(places.root, "/", kLedgerDir)));
  const auto names = TRY(make_dir_at(ledger.get(), kNamesDir, 0700));
  const auto space = TRY(make_dir_at(names.get(), pod.ns, 0700));
  const auto lock =
      TRY(lock_file_at(ledger.get(), kLedgerLock, LockKind::kExclusive, Deadline::in(kLedgerWait)));
  for (const auto& name : TRY(list_dir(space.get())))  // of a starter that was killed
    if (name.front() == '.') sys::unlinkat(space.get(), name, 0).ignore("the next one tries again");
  if (const auto holder = TRY(id_of_name(places, pod.ns, pod.name))) {
    const auto view = view_pod(places, *holder);
    const bool ended = view.ok() && (view.value().status.phase == "Succeeded" ||
                                     view.value().status.phase == "Failed");
    return Error::make(Code::kExists,
                       cat("the name '", pod.name, "' is taken by pod ", holder->substr(0, 12)))
        .hint(cat("wherry rm ", ended ? "" : "-f ",
                  pod.ns == "default" ? "" : cat("-n ", pod.ns, " "), pod.name));
  }
  TRY(replace_file(space.get(), pod.name, pod.id, 0600));
  auto kept = keep();
  if (!kept.ok())
    sys::unlinkat(space.get(), pod.name, 0).ignore("the first error is the one to tell");
  return kept;
}

Result<std::optional<std::string>> id_of_name(const Places& places, const std::string& ns,
                                              const std::string& name) {
  const auto text = read_file_at(
      AT_FDCWD, cat(places.root, "/", kLedgerDir, "/", kNamesDir, "/", ns, "/", name), 128);
  if (!text.ok()) return std::optional<std::string>{};
  const std::string id{trim(text.value())};
  if (!is_id(id) || !exists(pod_path(places.root, id))) return std::optional<std::string>{};
  return std::optional{id};
}

Result<std::string> where_else(const Places& places, const std::string& name) {
  std::vector<std::string> found;
  const auto names = sys::openat(AT_FDCWD, cat(places.root, "/", kLedgerDir, "/", kNamesDir),
                                 O_RDONLY | O_DIRECTORY);
  if (!names.ok() || !check_name("the name", name).ok()) return std::string{};
  for (const auto& ns : TRY(list_dir(names.value().get())))
    if (TRY(id_of_name(places, ns, name))) found.push_back(cat("-n ", ns));
  std::sort(found.begin(), found.end());
  return join(found, " or ");
}

void sweep_unborn(const Places& places) {
  constexpr auto kNobodyAtWork = std::chrono::seconds{60};  // a removal ends with this directory
  const auto root = sys::openat(AT_FDCWD, pods_path(places.root), O_RDONLY | O_DIRECTORY);
  const auto state = sys::openat(AT_FDCWD, pods_path(places.state), O_RDONLY | O_DIRECTORY);
  if (!root.ok() || !state.ok()) return;
  if (const auto names = list_dir(root.value().get()); names.ok())
    for (const auto& name : names.value())
      if (name.starts_with(kUnbornPrefix))
        remove_tree(root.value().get(), name).ignore("the next starter tries again");
  const auto ids = list_dir(state.value().get());
  if (!ids.ok()) return;
  for (const auto& id : ids.value()) {
    const auto dir = open_dir_at(state.value().get(), id);
    if (!is_id(id) || exists(pod_path(places.root, id)) || !dir.ok()) continue;
    const auto locked = is_locked_at(dir.value().get(), kLockFile);
    const auto st = sys::fstat(dir.value().get());
    const bool old = st.ok() && ::time(nullptr) - st.value().st_mtime >= kNobodyAtWork.count();
    if (locked.ok() && !locked.value() && old)
      remove_tree(state.value().get(), id).ignore("the next starter tries again");
  }
}

Result<std::vector<std::string>> all_ids(const Places& places) {
  std::vector<std::string> ids;
  const auto dir = sys::openat(AT_FDCWD, pods_path(places.root), O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) {
    if (dir.error().code() == Code::kNotFound) return ids;
    return Error::sys("openat", pods_path(places.root), dir.error().sys_errno());
  }
  for (auto& name : TRY(list_dir(dir.value().get())))
    if (is_id(name)) ids.push_back(std::move(name));
  return ids;
}

Result<pod::Pod> load_pod(const Places& places, const std::string& id) {
  return pod::pod_from_json(TRY(read_json(cat(pod_path(places.root, id), "/", kPodFile))));
}

Result<PodView> view_pod(const Places& places, const std::string& id) {
  if (!exists(pod_path(places.root, id)))
    return Error::make(Code::kNotFound, cat("there is no pod ", id.substr(0, 12)));
  PodView view;
  const auto state = sys::openat(AT_FDCWD, pod_path(places.state, id), O_RDONLY | O_DIRECTORY);
  // The lock first: a status written before its last holder let go is the last one.
  if (state.ok()) view.alive = TRY(is_locked_at(state.value().get(), kLockFile));
  const bool told = take_status(cat(pod_path(places.state, id), "/", kStatusFile), view) ||
                    take_status(cat(pod_path(places.root, id), "/", kStatusFile), view);
  if (!told) {
    view.status = status_from_record(places, id);
    if (view.alive && view.status.reason.empty()) view.status.phase = "Pending";
  }
  const auto why = view.status.reason;
  if (!view.alive) mark_unkept(view.status, state.ok());
  if (!told && !why.empty()) view.status.reason = why;
  return view;
}

}  // namespace wherry::shim
