#include "oci/state.h"

#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "oci/reader.h"
#include "oci/spec.h"

namespace wherry::oci {
namespace {

constexpr std::pair<NamespaceType, std::string_view> kNamespaces[] = {
    {NamespaceType::kPid, "pid"},       {NamespaceType::kNetwork, "network"},
    {NamespaceType::kMount, "mount"},   {NamespaceType::kIpc, "ipc"},
    {NamespaceType::kUts, "uts"},       {NamespaceType::kUser, "user"},
    {NamespaceType::kCgroup, "cgroup"}, {NamespaceType::kTime, "time"},
};

}  // namespace

std::string_view to_string(NamespaceType type) {
  for (const auto& [known, word] : kNamespaces)
    if (known == type) return word;
  return "?";
}

void read(const Cursor& at, NamespaceType& out) {
  if (!at.is(Node::Type::kString, "a string")) return;
  std::string all;
  for (const auto& [type, word] : kNamespaces) {
    if (word == at.node->text) {
      out = type;
      return;
    }
    all += cat(all.empty() ? "" : ", ", in_quotes(word));
  }
  at.problem(cat("must be one of ", all, ", not ", in_quotes(at.node->text)));
}

std::string_view to_string(Status status) {
  switch (status) {
    case Status::kCreating:
      return "creating";
    case Status::kCreated:
      return "created";
    case Status::kRunning:
      return "running";
    case Status::kPaused:
      return "paused";
    case Status::kStopped:
      return "stopped";
  }
  return "?";
}

Json to_json(const State& state) {
  Json out{
      {"ociVersion", state.oci_version}, {"id", state.id}, {"status", to_string(state.status)}};
  if (state.status != Status::kStopped && state.pid > 0) out["pid"] = state.pid;
  out["bundle"] = state.bundle;
  if (!state.annotations.empty()) out["annotations"] = state.annotations;
  return out;
}

}  // namespace wherry::oci
