// The namespaces that all containers of a pod share.
#pragma once
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace wherry::network {

struct NamespacePlan {
  bool net = true, ipc = true,
       uts = true;          // which to make; the host's are used in place of the others
  bool loopback_up = true;  // only with net
  std::string hostname;     // only with uts; empty: the host's name is kept
};

// Each descriptor pins its namespace: it goes when the last descriptor, mount and process of it is
// gone.
struct PodNamespaces {
  UniqueFd net, ipc, uts;  // -1: not asked for
};

// Made by a short-lived child that is gone when this returns, so the caller stays where it is.
// kUnsupported names the sysctl and its value when the host's limit on namespaces is reached
// (REL-39). The caller must be single-threaded.
Result<PodNamespaces> make_namespaces(const NamespacePlan& plan, Deadline deadline);

}  // namespace wherry::network
