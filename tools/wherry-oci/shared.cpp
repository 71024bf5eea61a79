#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/explain.h"
#include "runtime/container/record.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {
constexpr const char* kLockFile = "lock";
constexpr std::size_t kLargestConfig = 16U << 20;
}  // namespace

Result<std::string> the_id(const Options& options, std::size_t most_operands) {
  if (options.operands.empty())
    return Error::make(Code::kInvalid, "the id of the container is missing")
        .hint(see_help(options.verb));
  if (options.operands.size() > most_operands)
    return Error::make(Code::kInvalid,
                       cat("one word too many: ", in_quotes(options.operands[most_operands])));
  TRY(container::check_id(options.operands[0]));
  return options.operands[0];
}

Error no_container(const std::string& id) {
  return Error::make(Code::kNotFound, cat("container '", id, "' does not exist"));
}

Result<bool> lock_container(StateDir& dir, const std::string& id) {
  auto lock =
      lock_file_at(dir.container.get(), kLockFile, LockKind::kExclusive, Deadline::in(kVerbTime));
  if (!lock.ok() && lock.error().code() == Code::kNotFound) return false;  // removed
  if (!lock.ok()) return std::move(lock).error().context(id);
  // It has been renamed away, perhaps, and the id belongs to another container by now.
  if (!TRY(is_entry(dir.root.get(), id, dir.container.get()))) return false;
  dir.lock = std::move(lock).value();
  return true;
}

Result<StateDir> open_container(const Options& options, const std::string& id, Locking locking) {
  StateDir dir;
  dir.root = TRY(open_private_dir(options.global.root, 0700));
  while (true) {
    auto container = open_dir_at(dir.root.get(), id);
    if (!container.ok() && container.error().code() == Code::kNotFound) return no_container(id);
    if (!container.ok()) return std::move(container).error();
    dir.container = std::move(container).value();
    if (locking == Locking::kNo || TRY(lock_container(dir, id))) return dir;
  }
}

Result<StateDir> make_container_dir(const Options& options, const std::string& id) {
  StateDir dir;
  dir.root = TRY(open_private_dir(options.global.root, 0700));
  auto made = sys::mkdirat(dir.root.get(), id, 0700);
  if (!made.ok()) {
    if (made.error().code() == Code::kExists)
      return Error::make(Code::kExists, cat("container '", id, "' exists already"));
    return std::move(made).error();
  }
  auto container = open_dir_at(dir.root.get(), id);
  if (!container.ok()) {
    sys::unlinkat(dir.root.get(), id, AT_REMOVEDIR).ignore("the first error is told");
    return std::move(container).error();
  }
  dir.container = std::move(container).value();
  auto locked = lock_container(dir, id);
  if (!locked.ok()) {
    if (locked.error().code() != Code::kBusy) {  // then it is in the hands of who deletes it
      sys::unlinkat(dir.container.get(), kLockFile, 0).ignore("it may not have been made");
      sys::unlinkat(dir.root.get(), id, AT_REMOVEDIR).ignore("the first error is told");
    }
    return std::move(locked).error();
  }
  if (!locked.value())
    return Error::make(Code::kState, cat("container '", id, "' was deleted while it was made"));
  return dir;
}

Result<> remove_container_dir(const StateDir& dir, const std::string& id) {
  CHECK(dir.lock, "only who holds the lock may remove it");
  if (!TRY(is_entry(dir.root.get(), id, dir.container.get()))) return {};
  return remove_tree(dir.root.get(), id);
}

std::string seccomp_cache(const Options& options) {
  return options.global.root + "/.seccomp";
}

Result<oci::Spec> load_spec(const std::string& bundle) {
  const auto dir = TRY_CTX(sys::openat(AT_FDCWD, bundle, O_RDONLY | O_DIRECTORY), "bundle");
  const auto text =
      TRY_CTX(read_file_at(dir.get(), "config.json", kLargestConfig), cat("bundle '", bundle, "'"));
  auto document = TRY(oci::parse_config(text));
  for (const auto& note : document.notes) LOG(kWarning, note);
  return std::move(document.spec);
}

Error explain_start(Error error, const StateDir& dir) {
  const auto record = container::load_record(dir.container.get());
  if (!record.ok()) return error;
  const auto spec = load_spec(record.value().bundle);
  if (!spec.ok()) return error;
  const auto place = container::own_place(record.value());
  const bool found = place.ok() && place.value().has_value();
  return container::explain_failed_start(std::move(error), spec.value(),
                                         found ? &*place.value() : nullptr);
}

Result<> write_pid_file(const std::string& path, pid_t pid) {
  if (path.empty()) return {};
  const auto slash = path.rfind('/');
  const auto dir =
      TRY_CTX(sys::openat(AT_FDCWD, slash == std::string::npos ? "." : path.substr(0, slash + 1),
                          O_RDONLY | O_DIRECTORY),
              "pid file");
  return replace_file(dir.get(), slash == std::string::npos ? path : path.substr(slash + 1),
                      cat(pid), 0644);
}

Result<> send_console(const std::string& socket_path, int console) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path)
    return Error::sys("connect", socket_path, ENAMETOOLONG);
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket) return Error::sys("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
    return Error::sys("connect", socket_path);
  return sys::sendmsg(socket.get(), "/dev/ptmx", {&console, 1});
}

}  // namespace wherry::tool
