// ps, inspect.
#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "tools/wherry/output.h"
#include "tools/wherry/run_flags.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

struct Filter {
  std::string key, value;
};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return text;
}

// The phases of a pod, and "exited" for both of those that are ends.
Result<> check_status_word(const std::string& word) {
  constexpr std::array<std::string_view, 6> kWords{"pending", "running", "succeeded",
                                                   "failed",  "unknown", "exited"};
  if (std::find(kWords.begin(), kWords.end(), lower(word)) != kWords.end()) return {};
  return Error::make(Code::kInvalid,
                     cat("--filter: status ", in_quotes(word), " is none of ",
                         join(std::vector<std::string>{kWords.begin(), kWords.end()}, ", ")));
}

Result<std::vector<Filter>> filters_of(const ListOptions& options) {
  std::vector<Filter> out;
  for (const auto& text : options.filters) {
    auto [key, value] = key_and_value(text);
    const bool known = key == "name" || key == "id" || key == "status" || key == "label";
    if (!known || value.empty())
      return Error::make(Code::kInvalid, cat("--filter: ", in_quotes(text),
                                             " is not name=, id=, status= or label= with a value"));
    if (key == "status") TRY(check_status_word(value));
    out.push_back({std::move(key), std::move(value)});
  }
  for (const auto& label : options.labels) out.push_back({"label", label});
  return out;
}

bool has_ended(const PodStatus& status) {
  return status.phase == "Succeeded" || status.phase == "Failed";
}

bool matches(const PodStatus& status, const Filter& filter) {
  if (filter.key == "name") return status.name.find(filter.value) != std::string::npos;
  if (filter.key == "id") return status.id.rfind(filter.value, 0) == 0;
  if (filter.key == "status")
    return lower(status.phase) == lower(filter.value) ||
           (lower(filter.value) == "exited" && has_ended(status));
  const auto [key, value] = key_and_value(filter.value);
  const auto label = status.labels.find(key);
  return label != status.labels.end() &&
         (filter.value.find('=') == std::string::npos || label->second == value);
}

std::string state_text(const PodStatus& status) {
  // As kubectl shows it: a pod that is up, but one of its containers is not.
  std::string text = status.reason == "CrashLoopBackOff" ? status.reason : status.phase;
  if (status.exit_code) text += cat(" (", *status.exit_code, ")");
  if (status.oom_killed) text += ", out of memory";
  if (!status.reason.empty() && !status.oom_killed && status.reason != text)
    text += cat(", ", status.reason.substr(0, 60));
  return text;
}

std::string image_text(const PodStatus& status) {
  std::string first;
  std::size_t others = 0;
  for (const auto& container : status.containers) {
    if (container.init) continue;
    if (first.empty())
      first = container.image;
    else if (container.image != first)
      ++others;
  }
  return others == 0 ? first : cat(first, " +", others);
}

std::string table_of(const std::vector<PodStatus>& pods) {
  Table table{{"POD ID", "NAMESPACE", "NAME", "STATUS", "READY", "RESTARTS", "AGE", "IMAGE"}};
  for (const auto& pod : pods) {
    std::size_t ready = 0, all = 0, restarts = 0;
    for (const auto& container : pod.containers) {
      restarts += container.restarts;
      if (container.init) continue;
      ++all;
      if (container.ready) ++ready;
    }
    table.add({short_id(pod.id), pod.ns, pod.name, state_text(pod), cat(ready, "/", all),
               std::to_string(restarts), age_of(pod.created), image_text(pod)});
  }
  return table.text();
}

// A container's own part, with what of the pod is of use beside it.
Result<Json> container_part(const Json& pod, const std::string& name) {
  for (const auto& container : pod["containers"]) {
    if (json_string_or(container, "name", "") != name) continue;
    Json out = container;
    for (const char* key : {"id", "namespace", "phase", "shimPid", "keeperPid"})
      if (pod.contains(key)) out[std::string_view{key} == "id" ? "podId" : key] = pod[key];
    out["podName"] = pod["name"];
    if (pod.contains("spec"))
      for (const char* list : {"containers", "initContainers", "init_containers"})
        if (pod["spec"].contains(list))
          for (const auto& spec : pod["spec"][list])
            if (json_string_or(spec, "name", "") == name) out["spec"] = spec;
    if (pod.contains("configs") && pod["configs"].contains(name))
      out["config"] = pod["configs"][name];
    return out;
  }
  return Error::make(Code::kNotFound, cat("the pod has no container ", in_quotes(name)));
}

}  // namespace

Result<int> list_pods(const Global& global, const ListOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto filters = TRY(filters_of(options));
  const bool by_status = std::any_of(filters.begin(), filters.end(),
                                     [](const auto& filter) { return filter.key == "status"; });
  auto pods = TRY(TRY(Pods::open(global.places)).list());
  std::erase_if(pods, [&](const PodStatus& pod) {
    if (!options.all && !by_status && has_ended(pod)) return true;
    if (!options.ns.empty() && pod.ns != options.ns) return true;
    return !std::all_of(filters.begin(), filters.end(),
                        [&](const Filter& filter) { return matches(pod, filter); });
  });
  if (format == Format::kJson) {
    Json out = Json::array();
    for (const auto& pod : pods)
      if (options.quiet)
        out.push_back(pod.id);
      else
        out.push_back(to_json(pod));
    TRY(print_json(out));
    return 0;
  }
  if (!options.quiet) {
    TRY(print(table_of(pods)));
    return 0;
  }
  std::string out;
  for (const auto& pod : pods) out += short_id(pod.id) + "\n";
  TRY(print(out));
  return 0;
}

Result<int> inspect(const Global& global, const InspectOptions& options) {
  if (options.output != "json")
    return Error::make(Code::kUnsupported,
                       cat("-o: ", in_quotes(options.output), " is not supported; it is json"));
  const auto pods = TRY(Pods::open(global.places));
  Json found = Json::array();
  for (const auto& text : options.targets) {
    const auto target = TRY(pods.resolve(text, options.ns));
    auto pod = TRY(pods.inspect(target));
    if (!options.all) pod.erase("configs");  // mostly seccomp rules
    found.push_back(target.container.empty() ? std::move(pod)
                                             : TRY(container_part(pod, target.container)));
  }
  TRY(print_json(found.size() == 1 ? found[0] : found));
  return 0;
}

}  // namespace wherry::cli
