#include "shim/pods/programs.h"

#include <linux/memfd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "base/sealed.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/pods/store_paths.h"
#include "shim/protocol/boot_plan.h"

namespace wherry::shim {
namespace {

constexpr char kKeeperProgram[] = "wherry-keep", kWorkerProgram[] = "wherry-shim";
constexpr int kMostPodsAsked = 4;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

Result<UniqueFd> open_program(const char* name) {
  std::vector<std::string> places;
  if (const char* wanted = ::secure_getenv("WHERRY_LIBEXEC")) places.emplace_back(wanted);
  if (const auto self = sys::readlinkat(AT_FDCWD, "/proc/self/exe"); self.ok())
    places.push_back(self.value().substr(0, self.value().rfind('/')));
  places.emplace_back(WHERRY_LIBEXEC_DIR);
  for (const auto& place : places)
    if (auto file = sys::openat(AT_FDCWD, cat(place, "/", name), O_RDONLY); file.ok()) return file;
  return Error::make(Code::kNotFound,
                     cat("the program '", name, "' is not in ", join(places, ", ")))
      .hint("set WHERRY_LIBEXEC to the directory that holds it");
}

namespace {

// What a living process executes, if it is sealed and of the wanted build. Its number may be
// another process's by now: then the build tells.
UniqueFd running_copy(pid_t pid, const std::string& build) {
  if (pid <= 0 || build.empty()) return {};
  auto exe = sys::openat(AT_FDCWD, cat("/proc/", pid, "/exe"), O_RDONLY);
  if (!exe.ok()) return {};
  const auto seals = sys::get_seals(exe.value().get());
  if (!seals.ok() || (seals.value() & kSeals) != kSeals) return {};
  const auto id = build_id(exe.value().get());
  return id.ok() && id.value() == build ? std::move(exe).value() : UniqueFd{};
}

Shims shims_of(const Places& places, const std::string& id) {
  const auto text =
      read_file_at(AT_FDCWD, cat(pod_path(places.state, id), "/", kStatusFile), 1024 * 1024);
  if (!text.ok()) return {};
  const auto json = parse_json(text.value(), kStatusFile);
  if (!json.ok()) return {};
  const auto shims = json.value().find("shims");
  return shims == json.value().end() ? Shims{} : shims_from_json(*shims);
}

}  // namespace

Result<SealedPrograms> sealed_programs(const Places& places) {
  const auto keeper = TRY(open_program(kKeeperProgram));
  const auto worker = TRY(open_program(kWorkerProgram));
  const auto keeper_build = TRY(build_id(keeper.get()));
  const auto worker_build = TRY(build_id(worker.get()));
  SealedPrograms sealed;
  if (const auto state = sys::openat(AT_FDCWD, pods_path(places.state), O_RDONLY | O_DIRECTORY);
      state.ok()) {
    int asked = 0;
    for (const auto& id : TRY(list_dir(state.value().get()))) {
      if (++asked > kMostPodsAsked || (sealed.keeper && sealed.worker)) break;
      const auto shims = shims_of(places, id);
      if (!sealed.keeper) sealed.keeper = running_copy(shims.keeper.pid, keeper_build);
      if (!sealed.worker) sealed.worker = running_copy(shims.worker.pid, worker_build);
    }
  }
  if (!sealed.keeper) sealed.keeper = TRY(seal_program(keeper.get(), kKeeperProgram));
  if (!sealed.worker) sealed.worker = TRY(seal_program(worker.get(), kWorkerProgram));
  return sealed;
}

}  // namespace wherry::shim
