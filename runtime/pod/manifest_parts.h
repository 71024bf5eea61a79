// The parts of the manifest reader, by what they read. Only the manifest*.cpp files include this.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pod/manifest.h"
#include "runtime/pod/manifest_reader.h"

namespace wherry::pod {

// ---- names
// ---------------------------------------------------------------------------------------------------------
bool is_dns_label(std::string_view text);      // RFC 1123: at most 63 of a-z 0-9 -
bool is_dns_subdomain(std::string_view text);  // labels joined by dots, at most 253
bool is_image_reference(std::string_view text);

// ---- security
// ------------------------------------------------------------------------------------------------------
// What the pod's securityContext gives to each container that does not say otherwise.
Security read_pod_security(Findings& findings, const Field& field, Pod& pod);
void read_container_security(Findings& findings, const Field& field, Security& security);

// ---- volumes
// -------------------------------------------------------------------------------------------------------
Volume read_volume(Findings& findings, const Field& field);

// ---- resources
// -----------------------------------------------------------------------------------------------------
struct ResourceReading {
  Limits limits;
  std::optional<Quantity> cpu_limit, cpu_request, memory_limit, memory_request;
};
ResourceReading read_resources(Findings& findings, const Field& field, const NodeFacts& node);

// ---- containers
// ----------------------------------------------------------------------------------------------------
struct ContainerContext {
  const Pod& pod;  // everything but the containers is read
  const Security& defaults;
  const NodeFacts& node;
};
Container read_container(Findings& findings, const Field& field, const ContainerContext& context);

// ---- variables
// -----------------------------------------------------------------------------------------------------
using Variables = std::vector<std::pair<std::string, std::string>>;
// $(NAME) -> its value; $$ -> $; a name that is not there stays as it is written.
std::string expand(std::string_view text, const Variables& variables);
// metadata.name, metadata.labels['x'] ...; nothing when it is not known before the pod runs.
std::optional<std::string> field_reference(const Pod& pod, std::string_view path);
Variables read_env(Findings& findings, const std::vector<Field>& items, const Pod& pod,
                   const ResourceReading& resources, std::string_view container);

}  // namespace wherry::pod
