#include "shim/pods/starter.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "cgroups/cgroups.h"
#include "runtime/image/store.h"
#include "runtime/pod/to_spec.h"
#include "shim/pods/asking.h"
#include "shim/pods/ending.h"
#include "shim/pods/programs.h"
#include "shim/pods/store_paths.h"
#include "shim/protocol/boot_plan.h"
#include "shim/protocol/keeper_messages.h"
#include "shim/protocol/removal.h"

namespace wherry::shim {
namespace {

constexpr Millis kUndoWait{5'000};
constexpr int kBacklog = 64;

Result<BootPlan> make_plan(const Places& places, const pod::Pod& pod) {
  BootPlan plan;
  plan.id = pod.id;
  plan.name = pod.name;
  plan.ns = pod.ns;
  plan.root = places.root;
  plan.state = places.state;
  plan.cgroup_parent = places.cgroup_parent;
  std::optional<image::Store> store;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const auto& container : *list) {
      if (!container.rootfs_dir.empty()) continue;
      if (!store) store = TRY(image::Store::open(places.root));
      auto image = TRY_CTX(store->find(container.image), cat("container '", container.name, "'"));
      plan.images[container.name] = {container.image, image.digest.text(), std::move(image.config),
                                     std::move(image.layer_dirs)};
    }
  }
  return plan;
}

Result<UniqueFd> listen_at(int state_dir) {
  UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket) return Error::sys("socket");
  const auto path = cat(fd_path(state_dir), "/", kSocketFile);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // bind(2) gives the socket 0777 less the umask; the directory is 0700, and this is the second
  // lock on the door.
  const mode_t before = ::umask(0177);
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(before);
  if (bound < 0) return Error::sys("bind", kSocketFile, error);
  if (::listen(socket.get(), kBacklog) < 0) return Error::sys("listen", kSocketFile);
  return socket;
}

// The pod's limits are in force before the first process is in it; keeper and worker get a leaf of
// their own.
Result<cgroups::Place> make_cgroups(const Places& places, const pod::Pod& pod) {
  const auto hierarchies = TRY(cgroups::discover());
  const auto resources = pod::pod_resources(pod);
  const auto writes = TRY_CTX(cgroups::to_writes(resources, hierarchies), "limits of the pod");
  const auto place = TRY(cgroups::Place::create(hierarchies, pod_cgroup(places, pod.id),
                                                cgroups::needed_controllers(resources)));
  TRY(place.apply(writes));
  return cgroups::Place::create(hierarchies, cat(pod_cgroup(places, pod.id), "/", kShimCgroup), {});
}

// In the child: exactly these descriptors, from kFirstFd on, and the program behind them.
[[noreturn]] void become_keeper(const std::vector<int>& fds, int program, char* const* argv,
                                char* const* env) {
  constexpr int kAbove = 256;
  std::vector<int> safe;
  for (const int fd : fds) safe.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, kAbove));
  const int exe = ::fcntl(program, F_DUPFD_CLOEXEC, kAbove);
  int next = keeper::kFirstFd;
  for (const int fd : safe)
    if (::dup2(fd, next++) < 0) ::_exit(125);
  if (::dup2(exe, next) < 0 || ::fcntl(next, F_SETFD, FD_CLOEXEC) < 0) ::_exit(125);
  // What our own caller left open is no business of the keeper's.
  sys::close_range(static_cast<unsigned>(next) + 1, ~0U).ignore("then it stays open");
  const auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2})
    if (!null.ok() || ::dup2(null.value().get(), fd) < 0) ::_exit(125);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::syscall(SYS_execveat, next, "", argv, env, AT_EMPTY_PATH);
  ::_exit(126);
}

// The keeper is nobody's child but init's: the one between is gone when this returns.
Result<> start_keeper(const cgroups::Place& place, const SealedPrograms& programs,
                      std::vector<int> fds, std::string names) {
  std::string name = "wherry-keep";
  std::vector<char*> argv{name.data(), names.data(), nullptr};
  std::vector<std::string> kept{
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  if (const char* fault = ::secure_getenv("WHERRY_FAULT"))
    kept.push_back(cat("WHERRY_FAULT=", fault));
  std::vector<char*> env;
  for (auto& entry : kept) env.push_back(entry.data());
  env.push_back(nullptr);

  CloneArgs args;
  args.cgroup_fd = place.unified_fd();
  const auto between = TRY(clone_process(args));
  if (between.pid == 0) {
    ::setsid();
    const auto keeper = clone_process({});
    if (!keeper.ok()) ::_exit(125);
    if (keeper.value().pid != 0) ::_exit(0);
    become_keeper(fds, programs.keeper.get(), argv.data(), env.data());
  }
  const auto ended = TRY(sys::waitid_pidfd(between.pidfd.get(), WEXITED));
  if (ended->si_code != CLD_EXITED || ended->si_status != 0)
    return Error::make(Code::kSystem, "the keeper could not be started");
  return {};
}

// The pod's directory in the store has its name only with its record in it: a pod without one would
// hold a name that no verb could free.
Result<UniqueFd> make_record(int pods, const pod::Pod& pod) {
  const auto unborn = cat(kUnbornPrefix, pod.id);
  auto dir = TRY(make_dir_at(pods, unborn, 0700));
  const auto text = dump_json_pretty(pod::to_json(pod));
  TRY(pod.remove_when_done ? replace_file(dir.get(), kPodFile, text, 0600)
                           : write_file_atomic(dir.get(), kPodFile, text, 0600));
  TRY(sys::renameat2(pods, unborn, pods, pod.id, RENAME_NOREPLACE));
  return dir;
}

struct Directories {
  UniqueFd state, root, lock;
};

// All under the ledger's lock, so that what is found half made there belongs to nobody.
Result<Directories> make_directories(const Places& places, const pod::Pod& pod) {
  Directories made;
  const auto state_pods = TRY(open_private_dir(pods_path(places.state)));
  const auto root_pods = TRY(open_private_dir(pods_path(places.root)));
  TRY(reserve_name(places, pod, [&]() -> Result<> {
    sweep_unborn(places);
    made.state = TRY(make_dir_at(state_pods.get(), pod.id, 0700));
    // Held from before the record exists: nobody can take this pod for an abandoned one.
    made.lock = TRY(
        lock_file_at(made.state.get(), kLockFile, LockKind::kExclusive, Deadline::in(Millis{0})));
    made.root = TRY(make_record(root_pods.get(), pod));
    return {};
  }));
  return made;
}

Result<Launched> make_pod(const Places& places, const pod::Pod& pod, int attach) {
  const auto plan = TRY(make_plan(places, pod));
  const auto programs = TRY_CTX(sealed_programs(places), "seal keeper and worker");
  static_cast<void>(TRY(open_private_dir(places.root + "/seccomp")));
  const auto made = TRY(make_directories(places, pod));
  const auto &state = made.state, &root = made.root, &lock = made.lock;
  TRY(replace_file(state.get(), kPlanFile, dump_json(to_json(plan)), 0600));
  const auto listener = TRY(listen_at(state.get()));
  const auto place = TRY(make_cgroups(places, pod));
  auto [ready_read, ready_write] = TRY(sys::pipe2(0));

  std::vector<int> fds{programs.worker.get(), state.get(), root.get(),
                       listener.get(),        lock.get(),  ready_write.get()};
  std::string names = cat(keeper::kProgramName, ",", kStateFd, ",", kRootFd, ",", kListenFd, ",",
                          kLockFd, ",", kReadyFd);
  if (attach >= 0) {
    fds.push_back(attach);
    names += cat(",", kAttachFd);
  }
  TRY(start_keeper(place, programs, std::move(fds), std::move(names)));
  // Ours is closed on return; the lock is the keeper's now, and this second description only
  // watches it.
  auto watched = TRY(sys::openat(state.get(), kLockFile, O_RDWR));
  return Launched{std::move(ready_read), std::move(watched)};
}

}  // namespace

Result<Launched> launch(const Places& places, const pod::Pod& pod, int attach) {
  TRY(check_name("the name", pod.name));
  TRY(check_name("the namespace", pod.ns));
  auto launched = make_pod(places, pod, attach);
  if (launched.ok()) return launched;
  take_away(places, pod, Deadline::in(kUndoWait)).ignore("the first error is the one to tell");
  return launched;
}

Result<Answer> await_start(const Places& places, const pod::Pod& pod, const Launched& launched,
                           Deadline deadline) {
  std::string line;
  auto read = [&]() -> Result<> {
    std::array<char, 65536> bytes;
    while (line.empty() || line.back() != '\n') {
      if (TRY(sys::poll_one(launched.ready.get(), POLLIN, deadline)) == 0)
        return Error::make(Code::kTimeout, cat("pod '", pod.name, "' has not started in time"));
      const auto got = TRY(sys::read(launched.ready.get(), bytes, "ready"));
      if (got == 0)
        return Error::make(Code::kProtocol, cat("the keeper of pod '", pod.name, "' has ended"));
      line.append(bytes.data(), got);
    }
    return {};
  };
  auto answered = [&]() -> Result<Answer> {
    TRY(read());
    const auto json = TRY(parse_json(line, "ready"));
    if (const auto error = json.find("error"); error != json.end()) return error_from_json(*error);
    const auto status = json.find("status");
    if (status == json.end()) return Error::make(Code::kProtocol, "the worker gave no status");
    Answer answer{TRY(pod_status_from_json(*status)), {}};
    if (const auto shims = json.find("shims"); shims != json.end())
      answer.shims = shims_from_json(*shims);
    return answer;
  };
  auto status = answered();
  if (status.ok()) return status;
  // A worker that is still at it ends what it has made in good order.
  if (status.error().code() == Code::kTimeout)
    ask_to_remove(places, pod.id, Deadline::in(kUndoWait));
  take_away(places, pod, Deadline::in(kUndoWait)).ignore("the first error is the one to tell");
  return status;
}

}  // namespace wherry::shim
