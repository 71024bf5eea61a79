// shim ls, inspect, call.
#include "base/json.h"
#include "base/text.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

std::string process_text(const Json& shim, const char* who) {
  const auto found = shim.find(who);
  if (found == shim.end()) return "-";
  const auto pid = json_int_or(*found, "pid", 0);
  return json_bool_or(*found, "alive", false)
             ? cat(pid, " (", json_string_or(*found, "state", "?"), ")")
             : cat(pid, " (gone)");
}

std::string memory_text(const Json& shim, const char* who) {
  const auto found = shim.find(who);
  return found == shim.end() ? "-" : cat(json_int_or(*found, "rssKb", 0), " kB");
}

}  // namespace

Result<int> shim_list(const Global& global, const OutputOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto shims = TRY(TRY(Pods::open(global.places)).shim_list());
  if (options.quiet) {
    Json pids = Json::array();
    std::string out;
    for (const auto& shim : shims) {
      pids.push_back(shim.contains("worker") ? json_int_or(shim["worker"], "pid", 0) : 0);
      out += cat(pids.back().get<std::int64_t>(), "\n");
    }
    TRY(format == Format::kJson ? print_json(pids) : print(out));
    return 0;
  }
  if (format == Format::kJson) {
    TRY(print_json(shims));
    return 0;
  }
  Table table{{"POD ID", "NAMESPACE", "NAME", "KEEPER", "MEMORY", "WORKER", "MEMORY", "STARTS"}};
  for (const auto& shim : shims)
    table.add({short_id(json_string_or(shim, "pod", "")), json_string_or(shim, "namespace", ""),
               json_string_or(shim, "name", ""), process_text(shim, "keeper"),
               memory_text(shim, "keeper"), process_text(shim, "worker"),
               memory_text(shim, "worker"), std::to_string(json_int_or(shim, "workerStarts", 0))});
  TRY(print(table.text()));
  return 0;
}

Result<int> shim_inspect(const Global& global, const TargetOptions& options) {
  const auto pods = TRY(Pods::open(global.places));
  TRY(print_json(TRY(pods.shim_inspect(TRY(pods.resolve(options.targets.at(0), options.ns))))));
  return 0;
}

Result<int> shim_call(const Global& global, const ShimCallOptions& options) {
  const auto params = TRY(parse_json(options.params, "PARAMS"));
  if (!params.is_object()) return Error::make(Code::kInvalid, "PARAMS: it is not a JSON object");
  if (options.timeout <= 0)
    return Error::make(Code::kInvalid, cat("--timeout: ", options.timeout, " is not positive"));
  const auto pods = TRY(Pods::open(global.places));
  const auto target = TRY(pods.resolve(options.target, options.ns));
  TRY(print_json(TRY(pods.shim_call(target, options.method, params,
                                    Deadline::in(std::chrono::seconds{options.timeout})))));
  return 0;
}

}  // namespace wherry::cli
