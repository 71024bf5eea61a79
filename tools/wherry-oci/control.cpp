// start, state, kill, delete, list.
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/timing.h"
#include "runtime/container/container.h"
#include "runtime/container/record.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

Result<int> signal_number(std::string text) {
  if (const auto number = parse_int<int>(text)) {
    if (*number < 0 || *number >= NSIG)  // 0 asks whether it could be sent (kill(2)), as with runc
      return Error::make(Code::kInvalid, cat("there is no signal ", text));
    return *number;
  }
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  const std::string_view name = std::string_view{text}.starts_with("SIG")
                                    ? std::string_view{text}.substr(3)
                                    : std::string_view{text};
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  if (name.starts_with("RTMIN")) {
    const auto more = name.size() == 5 ? std::optional<int>{0}
                                       : parse_int<int>(name.substr(name[5] == '+' ? 6 : 5));
    if (more && *more >= 0 && SIGRTMIN + *more <= SIGRTMAX) return SIGRTMIN + *more;
  }
  return Error::make(Code::kInvalid, cat("there is no signal ", in_quotes(text)));
}

struct Listed {
  oci::State state;
  std::string created, owner;
};

Result<Listed> look_at(const UniqueFd& root, const std::string& id) {
  const auto dir = TRY(open_dir_at(root.get(), id));
  Listed listed;
  listed.state = TRY(container::state(dir.get()));
  listed.created = TRY(container::load_record(dir.get())).created;
  const auto st = TRY(sys::fstat(dir.get()));
  listed.owner = st.st_uid == 0 ? "root" : cat("#", st.st_uid);
  return listed;
}

Json to_json(const Listed& listed) {
  return {{"ociVersion", listed.state.oci_version},
          {"id", listed.state.id},
          {"pid", listed.state.pid},
          {"status", oci::to_string(listed.state.status)},
          {"bundle", listed.state.bundle},
          {"created", listed.created},
          {"owner", listed.owner}};
}

void print_table(const std::vector<Listed>& all) {
  std::printf("%-24s %-8s %-10s %-32s %-32s %s\n", "ID", "PID", "STATUS", "BUNDLE", "CREATED",
              "OWNER");
  for (const auto& one : all)
    std::printf("%-24s %-8d %-10s %-32s %-32s %s\n", one.state.id.c_str(), one.state.pid,
                std::string{oci::to_string(one.state.status)}.c_str(), one.state.bundle.c_str(),
                one.created.c_str(), one.owner.c_str());
}

}  // namespace

Result<int> start(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  const auto dir = TRY(open_container(options, id, Locking::kYes));
  auto started = container::start(dir.container.get(), Deadline::in(kVerbTime));
  mark_phase("gate and execve");
  if (started.ok()) return 0;
  // A hook that fails ends the container, and then nothing of it stays (runtime-spec, lifecycle).
  const bool by_hook = started.error().step() == "hooks";
  auto error =
      by_hook ? std::move(started).error() : explain_start(std::move(started).error(), dir);
  if (by_hook) remove_container_dir(dir, id).ignore("the first error is the one to tell");
  return std::move(error).context(cat("start container '", id, "'"));
}

Result<int> state(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  const auto dir = TRY(open_container(options, id, Locking::kNo));
  const auto state =
      TRY_CTX(container::state(dir.container.get()), cat("state of container '", id, "'"));
  auto json = oci::to_json(state);
  json["created"] = TRY(container::load_record(dir.container.get())).created;
  std::fputs(dump_json_pretty(json).c_str(), stdout);
  return 0;
}

Result<int> kill(const Options& options) {
  const auto id = TRY(the_id(options, 2));
  const int signum =
      TRY(signal_number(options.operands.size() > 1 ? options.operands[1] : "SIGTERM"));
  const auto dir = TRY(open_container(options, id, Locking::kNo));
  TRY_CTX(container::kill(dir.container.get(), signum,
                          options.all ? container::Reach::kAll : container::Reach::kInit),
          cat("kill container '", id, "'"));
  return 0;
}

namespace {

Result<> check_deletable(const StateDir& dir, const Options& options) {
  const auto state = container::state(dir.container.get());
  if (!state.ok() && state.error().code() == Code::kNotFound) {
    // No record, so nothing of it was made yet (and its lock is ours, so nobody is making it).
    if (options.force) return {};
    return Error::make(Code::kState, "it was not made to the end")
        .hint("delete --force takes away what is there");
  }
  if (!state.ok())
    return Error::rebuilt(state.error().code(), state.error().sys_errno(), state.error().message())
        .context("whether it runs is not known")
        .hint(cat("look for its processes in the cgroup tree, end them, and remove ",
                  options.global.root, "/", options.operands[0]));
  if (state.value().status == oci::Status::kStopped || options.force) return {};
  return Error::make(Code::kState,
                     cat("it is ", oci::to_string(state.value().status), ", not stopped"))
      .hint("delete --force kills it first");
}

}  // namespace

Result<int> remove(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  auto dir = open_container(options, id, Locking::kYes);
  if (!dir.ok()) {
    if (options.force && dir.error().code() == Code::kNotFound) return 0;
    return std::move(dir).error();
  }
  const auto context = cat("delete container '", id, "'");
  TRY_CTX(check_deletable(*dir, options), context);
  TRY_CTX(container::destroy(dir->container.get(), "", Deadline::in(kVerbTime)), context);
  TRY(remove_container_dir(*dir, id));
  return 0;
}

Result<int> list(const Options& options) {
  if (options.format != "table" && options.format != "json")
    return Error::make(Code::kInvalid,
                       cat("--format: ", in_quotes(options.format), " is neither table nor json"));
  const auto root = TRY(open_private_dir(options.global.root, 0700));
  std::vector<Listed> all;
  for (const auto& id : TRY(list_dir(root.get()))) {
    if (id.starts_with('.')) continue;
    auto one =
        look_at(root, id);  // one that vanishes meanwhile is not an error of the list (REL-11)
    if (one.ok()) all.push_back(std::move(one).value());
  }
  if (options.quiet) {
    for (const auto& one : all) std::printf("%s\n", one.state.id.c_str());
  } else if (options.format == "json") {
    Json json = Json::array();
    for (const auto& one : all) json.push_back(to_json(one));
    std::printf("%s\n", dump_json(json).c_str());
  } else {
    print_table(all);
  }
  return 0;
}

}  // namespace wherry::tool
