// Where a pod's things are, and finding it: names, ids, whether it lives.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "shim/pods.h"
#include "shim/protocol/pod_status.h"

namespace wherry::shim {

std::string pods_path(const std::string& top);  // <top>/pods
std::string pod_path(const std::string& top, const std::string& id);
std::string pod_cgroup(const Places& places, const std::string& id);

// "web", within a namespace, as it may stand in a manifest. kInvalid says what is wrong.
Result<> check_name(const std::string& what, const std::string& name);

// Gives the name to the pod, for good only when `keep` succeeds: it is called under the ledger's
// lock and writes the pod's record. kExists names the pod that has the name. An entry whose pod is
// gone is nobody's.
Result<> reserve_name(const Places& places, const pod::Pod& pod,
                      const std::function<Result<>()>& keep);
Result<std::optional<std::string>> id_of_name(const Places& places, const std::string& ns,
                                              const std::string& name);
// Where pods of this name are, for a hint: "-n ns1", "-n ns1 or -n ns2"; empty: nowhere.
Result<std::string> where_else(const Places& places, const std::string& name);
Result<std::vector<std::string>> all_ids(const Places& places);

// Of a pod's directory in the store until its record is in it.
inline constexpr char kUnbornPrefix[] = ".new-";
// Takes away what starters have left that were killed before their pod existed. The ledger's lock
// is held by the caller.
void sweep_unborn(const Places& places);

// Everything about a pod that can be had from files and its lock.
struct PodView {
  PodStatus status;
  Shims shims;
  bool alive = false;  // keeper or worker hold the lock
};
Result<PodView> view_pod(const Places& places, const std::string& id);
Result<pod::Pod> load_pod(const Places& places, const std::string& id);

}  // namespace wherry::shim
