// A Kubernetes manifest (v1/Pod, YAML or JSON) -> Pod. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/pod/pod.h"

namespace wherry::pod {

struct Manifest {
  Pod pod;                            // id, uid and created are the caller's to fill
  std::vector<std::string> warnings;  // "web.yaml:12:5: spec.tolerations: is ignored: ..."
};

// What requests are compared with; absent: not compared.
struct NodeFacts {
  std::optional<std::uint64_t> cpu_milli, memory_bytes;
};

// What is wrong is told all at once, a line each with file, line, column and field (kInvalid). What
// is right and not supported is refused by name where leaving it out would make the pod something
// else than what was asked for, and is a warning where it would not. At most 1 MiB.
Result<Manifest> parse_manifest(std::string_view text, std::string_view file_name,
                                const NodeFacts& node = {});

}  // namespace wherry::pod
