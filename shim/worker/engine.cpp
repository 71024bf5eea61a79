#include "shim/worker/engine.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "oci/config.h"
#include "runtime/network/namespaces.h"
#include "shim/worker/rootfs.h"
#include "shim/worker/surroundings.h"

namespace wherry::shim {
namespace {

constexpr Millis kCreateWait{60'000};
constexpr Millis kDestroyWait{10'000};
constexpr std::size_t kLongestConfig = 16 * 1024 * 1024;
constexpr char kMountNamespace[] = "ns/mnt";
constexpr char kConfigFile[] = "config.json";
constexpr std::array<const char*, 3> kPodNamespaces{"net", "ipc", "uts"};

// A group of our own making that is gone, or on a host without the controller, counted nothing.
bool oom_killed(const std::string& cgroup) {
  const auto hierarchies = cgroups::discover();
  if (!hierarchies.ok()) return false;
  const auto place = cgroups::Place::open(hierarchies.value(), cgroup);
  if (!place.ok()) return false;
  const auto count = place.value().oom_count();
  return count.ok() && (count.value().kills > 0 || count.value().group_kills > 0);
}

}  // namespace

const pod::Container* Context::container(const std::string& name) const {
  for (const auto* list : {&pod.init_containers, &pod.containers})
    for (const auto& one : *list)
      if (one.name == name) return &one;
  return nullptr;
}

Result<UniqueFd> Engine::record_dir(const std::string& name) const {
  const auto all = TRY(make_dir_at(context_.state_dir.get(), kContainersDir, 0700));
  return make_dir_at(all.get(), name, 0700);
}

Result<UniqueFd> Engine::log_dir(const std::string& name) const {
  const auto all = TRY(make_dir_at(context_.root_dir.get(), kLogsDir, 0700));
  return make_dir_at(all.get(), name, 0700);
}

std::string Engine::log_path(const std::string& name, unsigned attempt) const {
  return cat(context_.root_path(), "/", kLogsDir, "/", name, "/", attempt, ".log");
}

LiveContainer* Engine::find(const std::string& name) {
  const auto found = containers_.find(name);
  return found == containers_.end() ? nullptr : &found->second;
}

LiveContainer* Engine::find_by_pid(const ChildExit& exit) {
  for (auto& [name, live] : containers_)
    if (!live.exited && live.init.pid == exit.pid &&
        (exit.start_ticks == 0 || exit.start_ticks == live.init.start_ticks))
      return &live;
  return nullptr;
}

// Named by number only while the engine itself holds it: namespaces_ loses nothing while it lives.
std::string Engine::pinned(const char* which) const {
  const auto found = namespaces_.find(which);
  return found == namespaces_.end() ? std::string{}
                                    : cat("/proc/", ::getpid(), "/fd/", found->second.get());
}

// They stay while containers come and go: the keeper holds them too.
Result<> Engine::make_namespaces() {
  const auto& pod = context_.pod;
  network::NamespacePlan plan;
  plan.net = plan.uts = pod.network != pod::Network::kHost;
  plan.ipc = !pod.host_ipc;
  plan.loopback_up = pod.network == pod::Network::kPod;
  plan.hostname = pod::hostname_of(pod);
  auto made =
      TRY_CTX(network::make_namespaces(plan, Deadline::in(kCreateWait)), "namespaces of the pod");
  for (auto [which, fd] :
       {std::pair{"net", &made.net}, std::pair{"ipc", &made.ipc}, std::pair{"uts", &made.uts}}) {
    if (!*fd) continue;
    context_.keeper.store(cat("ns/", which), fd->get());
    namespaces_.emplace(which, std::move(*fd));
  }
  return {};
}

Result<oci::Spec> Engine::make_spec(const pod::Container& container, int root_mount,
                                    mount::OpenedSources& bind_sources) {
  auto prepared = TRY(prepare_surroundings(context_, container));
  auto& around = prepared.around;
  const auto image = context_.plan.images.find(container.name);
  const oci::ImageConfig config =
      image == context_.plan.images.end() ? oci::ImageConfig{} : image->second.config;

  UniqueFd opened;
  if (root_mount < 0) {
    opened = TRY_CTX(sys::openat(AT_FDCWD, container.rootfs_dir, O_PATH | O_DIRECTORY), "root");
    around.rootfs = container.rootfs_dir;
  }
  const auto user = TRY(container::resolve_user(root_mount >= 0 ? root_mount : opened.get(),
                                                pod::user_of(container, config)));
  around.user = {user.uid, user.gid, user.additional_gids, user.home};
  TRY(pod::check_user(container, around.user));
  around.net_ns = pinned("net");
  around.ipc_ns = pinned("ipc");
  around.uts_ns = pinned("uts");
  bind_sources = std::move(prepared.bind_sources);
  return pod::to_spec(context_.pod, container, config, around);
}

ContainerIo::Options Engine::io_options(const pod::Container& container, unsigned attempt,
                                        int record_dir, int log_dir) const {
  ContainerIo::Options options;
  options.name = container.name;
  options.record_dir = record_dir;
  options.log_dir = log_dir;
  options.log_name = cat(attempt, ".log");
  options.terminal = container.tty;
  options.wants_stdin = container.stdin_open;
  options.stdin_once = container.stdin_once;
  return options;
}

Result<> Engine::create(const std::string& name, unsigned attempt) {
  const auto* wanted = context_.container(name);
  if (wanted == nullptr) return Error::make(Code::kNotFound, "the pod has no such container");
  if (!prepared_) {
    if (TRY(prepare_pod_files(context_)) == VolumesIn::kOwnNamespace)
      context_.keeper.store(kMountNamespace,
                            TRY(sys::openat(AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY)).get());
    TRY(make_namespaces());
  }
  prepared_ = true;

  LiveContainer live;
  live.name = name;
  live.attempt = attempt;
  live.record_dir = TRY(record_dir(name));
  TRY(prepare_exit_record(live.record_dir.get()));
  UniqueFd root;
  if (wanted->rootfs_dir.empty()) root = TRY(make_rootfs(context_, *wanted));
  container::CreateOptions options;
  live.spec = TRY(make_spec(*wanted, root.get(), options.bind_sources));
  TRY(replace_file(live.record_dir.get(), kConfigFile, dump_json(oci::to_json(live.spec)), 0600));

  const auto logs = TRY(log_dir(name));
  auto io = io_options(*wanted, attempt, live.record_dir.get(), logs.get());
  io.uid = live.spec.process->user.uid;
  io.gid = live.spec.process->user.gid;
  live.io = TRY(ContainerIo::create(context_.loop, context_.keeper, io));

  options.id = cat(context_.pod.id.substr(0, 12), "-", name);
  options.bundle = cat(context_.state_path(), "/", kContainersDir, "/", name);
  options.record_dir = live.record_dir.get();
  options.root_mount = std::move(root);
  options.stdio = live.io->child_stdio();
  options.clone_parent = context_.keeper.alive();
  options.cgroup_default = context_.container_cgroup(name);
  options.seccomp_cache = context_.plan.root + "/seccomp";
  FAULT_POINT("engine_create");
  auto created = container::create(live.spec, std::move(options), Deadline::in(kCreateWait));
  if (!created.ok()) {
    live.io->forget();
    return std::move(created).error();
  }
  FAULT_POINT("engine_created");
  live.init = created.value().init;
  live.pidfd = std::move(created.value().pidfd);
  TRY(live.io->begin(std::move(created.value().console)));
  containers_.insert_or_assign(name, std::move(live));
  return {};
}

Result<> Engine::start(const std::string& name) {
  auto* live = find(name);
  if (live == nullptr) return Error::make(Code::kState, "it is not created");
  FAULT_POINT("engine_start");
  return container::start(live->record_dir.get(), Deadline::in(kCreateWait));
}

Result<> Engine::signal(const std::string& name, int signum) {
  return container::kill(TRY(record_dir(name)).get(), signum, container::Reach::kInit);
}

Result<> Engine::kill(const std::string& name) {
  return container::kill(TRY(record_dir(name)).get(), SIGKILL, container::Reach::kAll);
}

Result<> Engine::destroy(const std::string& name) {
  FAULT_POINT("engine_destroy");
  TRY(container::destroy(TRY(record_dir(name)).get(), context_.container_cgroup(name),
                         Deadline::in(kDestroyWait)));
  context_.keeper.drop(cat("c/", name, "/"));
  containers_.erase(name);
  return {};
}

Result<ExitRecord> Engine::record_exit(LiveContainer& container, const ChildExit* exit) {
  ExitRecord record;
  // Before the cgroup is removed: the count goes with it.
  record.oom_killed = oom_killed(context_.container_cgroup(container.name));
  if (exit != nullptr) {
    record.code = wherry::exit_code_of(exit->wait_status);
    record.signal = WIFSIGNALED(exit->wait_status) ? WTERMSIG(exit->wait_status) : 0;
    record.time_ns = exit->time_ns;
  } else {
    record.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  }
  FAULT_POINT("exit_record");
  TRY(write_exit_record(container.record_dir.get(), record, context_.sync()));
  container.exited = true;
  // Another may stand there already, written before the worker was killed: that one counts.
  return TRY(read_exit_record(container.record_dir.get())).value_or(record);
}

Result<> Engine::rejoin() {
  prepared_ = true;
  for (const char* which : kPodNamespaces)
    if (auto ns = context_.keeper.take(cat("ns/", which)))
      namespaces_.insert_or_assign(which, std::move(*ns));
  if (const auto mounts = context_.keeper.take(kMountNamespace))
    TRY(sys::setns(mounts->get(), CLONE_NEWNS, "mount namespace of the pod's volumes"));
  return {};
}

Result<Engine::Found> Engine::adopt(const std::string& name, unsigned attempt) {
  LiveContainer live;
  live.name = name;
  live.attempt = attempt;
  live.record_dir = TRY(record_dir(name));
  const auto* wanted = context_.container(name);
  const auto record = container::load_record(live.record_dir.get());
  if (wanted == nullptr || !record.ok() || record.value().init.pid == 0) return Found{};
  live.init = record.value().init;
  const auto config = read_file_at(live.record_dir.get(), kConfigFile, kLongestConfig);
  if (config.ok()) {
    auto document = oci::parse_config(config.value(), kConfigFile);
    if (document.ok()) live.spec = std::move(document.value().spec);
  }
  const auto logs = TRY(log_dir(name));
  auto io = ContainerIo::adopt(context_.loop, context_.keeper,
                               io_options(*wanted, attempt, live.record_dir.get(), logs.get()));
  if (io.ok())
    live.io = std::move(io).value();
  else
    LOG(kWarning, io.error().message());

  Found found;
  found.exit = TRY(read_exit_record(live.record_dir.get()));
  auto pidfd = open_pidfd(live.init);
  if (found.exit) {
    found.what = Found::What::kGone;
    live.exited = true;
  } else if (pidfd.ok()) {
    live.pidfd = std::move(pidfd).value();
    const auto state = TRY(container::state(live.record_dir.get()));
    found.what = state.status == oci::Status::kCreated ? Found::What::kAtGate : Found::What::kAlive;
  } else {
    found.what = Found::What::kGone;
  }
  containers_.insert_or_assign(name, std::move(live));
  return found;
}

}  // namespace wherry::shim
