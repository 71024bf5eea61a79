// The state document of the runtime-spec (runtime.md, "State").
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace wherry::oci {

enum class Status : std::uint8_t { kCreating, kCreated, kRunning, kPaused, kStopped };
std::string_view to_string(Status status);  // "creating", "created", "running", "paused", "stopped"

struct State {
  std::string oci_version = "1.3.0";
  std::string id;
  Status status = Status::kStopped;
  int pid = 0;  // 0 when stopped, and left out then
  std::string bundle;
  std::map<std::string, std::string> annotations;
};
Json to_json(const State& state);

}  // namespace wherry::oci
