// The documents of a file, and the pod itself.
#include "runtime/pod/manifest.h"

#include <algorithm>

#include "runtime/pod/defaults.h"
#include "runtime/pod/manifest_parts.h"

namespace wherry::pod {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::string_view kAppArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompAnnotation = "seccomp.security.alpha.kubernetes.io/";
constexpr std::int64_t kMaxGrace = 31'536'000;  // a year, seconds

// ---- metadata
// ----------------------------------------------------------------------------------------------------

std::map<std::string, std::string> read_map(Object& object, std::string_view key) {
  std::map<std::string, std::string> out;
  const auto field = object.take(key);
  if (!field) return out;
  Object inner{object.findings(), *field};
  for (const auto& [name, value] : inner.entries())
    out[name] = as_string(object.findings(), value).value_or("");
  return out;
}

void read_annotation(Findings& findings, const Field& field, const std::string& key,
                     const std::string& value) {
  if (key.starts_with(kSeccompAnnotation)) {
    findings.warning(field.node, field.name,
                     cat(in_quotes(key), " has no effect: use securityContext.seccompProfile"));
  } else if (key.starts_with(kAppArmorAnnotation) && value != "unconfined") {
    const auto what = cat(in_quotes(key), ": the AppArmor profile ", in_quotes(value));
    if (value == "runtime/default")
      findings.warning(field.node, field.name,
                       cat(what, " is ignored: AppArmor profiles are not supported"));
    else
      findings.problem(field.node, field.name, cat(what, " is not loaded or not supported"));
  } else if (key.starts_with("io.podman.annotations.")) {
    findings.warning(field.node, field.name,
                     cat(in_quotes(key), " is ignored: it is podman's own"));
  }
}

void read_annotations(Object& metadata, Pod& pod) {
  const auto field = metadata.take("annotations");
  if (!field) return;
  Object inner{metadata.findings(), *field};
  for (const auto& [key, value] : inner.entries()) {
    const auto text = as_string(metadata.findings(), value).value_or("");
    read_annotation(metadata.findings(), value, key, text);
    pod.annotations[key] = text;
  }
}

void read_metadata(Findings& findings, const Field& field, Pod& pod) {
  Object object{findings, field};
  pod.name = object.string("name");
  const auto prefix = object.string("generateName");
  if (pod.name.empty() && prefix.empty()) object.problem("name is missing");
  // Made up by the caller's own rule: a pod without a name gets one when it is run.
  if (pod.name.empty() && !prefix.empty())
    object.problem("generateName is not supported: give a name");
  if (!pod.name.empty() && !is_dns_subdomain(pod.name))
    object.problem(cat("name ", in_quotes(pod.name), " must be of a-z, 0-9, '-' and '.'"));
  if (const auto ns = object.string("namespace"); !ns.empty()) pod.ns = ns;
  if (!is_dns_label(pod.ns))
    object.problem(cat("namespace ", in_quotes(pod.ns), " is not a DNS label"));
  pod.labels = read_map(object, "labels");
  read_annotations(object, pod);
  for (const auto* key :
       {"uid", "creationTimestamp", "resourceVersion", "selfLink", "generation", "managedFields",
        "deletionTimestamp", "deletionGracePeriodSeconds", "clusterName"})
    object.ignore(key);  // what a server writes: they come with exported pods
  object.warn("ownerReferences", "there are no controllers");
  object.warn("finalizers", "there are no controllers");
  object.rest();
}

// AppArmor annotations name a container: one that is not there is a profile that is not applied.
void check_annotations(Findings& findings, const YAML::Node& at, const Pod& pod) {
  for (const auto& [key, value] : pod.annotations) {
    if (!key.starts_with(kAppArmorAnnotation)) continue;
    const auto name = std::string_view{key}.substr(kAppArmorAnnotation.size());
    const auto named = [&](const auto& container) { return container.name == name; };
    const bool found = std::any_of(pod.containers.begin(), pod.containers.end(), named) ||
                       std::any_of(pod.init_containers.begin(), pod.init_containers.end(), named);
    if (!found)
      findings.problem(at, "metadata.annotations",
                       cat(in_quotes(key), ": there is no container ", in_quotes(name)));
  }
}

// ---- spec
// --------------------------------------------------------------------------------------------------------

void read_platform(Object& spec) {
  auto& findings = spec.findings();
  if (const auto field = spec.take("os")) {
    Object os{findings, *field};
    const auto name = os.string("name");
    os.rest();
    if (!name.empty() && name != "linux") os.problem(cat(in_quotes(name), " is not what this is"));
  }
  if (const auto field = spec.take("nodeSelector")) {
    Object selector{findings, *field};
    for (const auto& [key, value] : selector.entries()) {
      const auto text = as_string(findings, value).value_or("");
      if (key == "kubernetes.io/os" && text != "linux")
        findings.problem(value.node, value.name, cat(in_quotes(text), " is not what this is"));
    }
    findings.warning(field->node, field->name, "is ignored: there is one node");
  }
}

void read_namespaces(Object& spec, Pod& pod) {
  if (spec.boolean("hostNetwork").value_or(false)) pod.network = Network::kHost;
  pod.host_ipc = spec.boolean("hostIPC").value_or(false);
  if (spec.boolean("hostPID").value_or(false)) pod.pid_mode = PidMode::kHost;
  if (const auto field = spec.take("shareProcessNamespace");
      field && as_bool(spec.findings(), *field).value_or(false)) {
    if (pod.pid_mode == PidMode::kHost)
      spec.findings().problem(field->node, field->name, "cannot be together with hostPID");
    else
      spec.findings().problem(field->node, field->name,
                              "a PID namespace for the pod is not supported");
  }
  if (const auto field = spec.take("hostUsers");
      field && !as_bool(spec.findings(), *field).value_or(true))
    spec.findings().problem(field->node, field->name, "user namespaces are not supported");
}

void read_dns(Object& spec, Pod& pod) {
  auto& findings = spec.findings();
  const auto policy =
      spec.word("dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
  pod.dns.own_only = policy == 3U;
  if (const auto field = spec.take("dnsConfig")) {
    Object config{findings, *field};
    pod.dns.nameservers = config.strings("nameservers");
    pod.dns.searches = config.strings("searches");
    for (const auto& item : config.list("options")) {
      Object option{findings, item};
      const auto name = option.required_string("name");
      const auto value = option.string("value");
      option.rest();
      pod.dns.options.push_back(value.empty() ? name : cat(name, ":", value));
    }
    config.rest();
    for (const auto* list : {&pod.dns.nameservers, &pod.dns.searches, &pod.dns.options}) {
      // They become words of a file of lines (SEC-34).
      const bool bad = std::any_of(list->begin(), list->end(), [](const auto& word) {
        return word.empty() || has_control(word) || word.find(' ') != std::string::npos;
      });
      if (bad) config.problem("has an empty word, or one with blanks or control characters");
    }
  }
  if (pod.dns.own_only && pod.dns.nameservers.empty())
    spec.problem("dnsPolicy None needs a nameserver in dnsConfig");
}

void read_names(Object& spec, Pod& pod) {
  auto& findings = spec.findings();
  pod.hostname = spec.string("hostname");
  if (!pod.hostname.empty() && !is_dns_label(pod.hostname))
    spec.problem(cat("hostname ", in_quotes(pod.hostname), " is not a DNS label"));
  for (const auto& item : spec.list("hostAliases")) {
    Object alias{findings, item};
    auto ip = alias.required_string("ip");
    auto names = alias.strings("hostnames");
    alias.rest();
    const bool good_ip =
        !ip.empty() && ip.find_first_not_of("0123456789abcdefABCDEF.:") == std::string::npos;
    if (!good_ip) alias.problem(cat("ip ", in_quotes(ip), " is not an address"));
    for (const auto& name : names) {
      if (!is_dns_subdomain(name)) alias.problem(cat(in_quotes(name), " is not a name of a host"));
    }
    pod.host_aliases.emplace_back(std::move(ip), std::move(names));
  }
}

void read_scheduling(Object& spec) {
  constexpr std::string_view kOneNode = "there is one node";
  for (const auto* key :
       {"affinity", "nodeName", "overhead", "preemptionPolicy", "priority", "priorityClassName",
        "schedulerName", "tolerations", "topologySpreadConstraints", "workloadRef"})
    spec.warn(key, kOneNode);
  for (const auto& gate : spec.list("schedulingGates"))
    spec.findings().problem(gate.node, gate.name, "holds the pod back, and nobody here lifts it");
  spec.warn("readinessGates", "there are no controllers");
  spec.warn("activeDeadlineSeconds", "the pod is not ended by time");
  spec.warn("imagePullSecrets", "images are not pulled");
  spec.warn("serviceAccountName", "there are no service accounts");
  spec.warn("serviceAccount", "there are no service accounts");
  spec.warn("subdomain", "there is no DNS of pods");
  spec.warn("setHostnameAsFQDN", "there is no DNS of pods");
  spec.refuse("hostnameOverride", "is not supported");
  spec.ignore("automountServiceAccountToken");
  spec.ignore("enableServiceLinks");
  spec.refuse("resourceClaims", "resource claims are not supported");
  spec.refuse("ephemeralContainers", "cannot be part of a manifest");
  if (const auto handler = spec.take("runtimeClassName")) {
    const auto name = as_string(spec.findings(), *handler).value_or("");
    if (!name.empty())
      spec.findings().problem(handler->node, handler->name,
                              cat(in_quotes(name), " is not known here"));
  }
}

std::vector<Container> read_containers(Object& spec, std::string_view key,
                                       const ContainerContext& context) {
  std::vector<Container> out;
  for (const auto& item : spec.list(key)) {
    out.push_back(read_container(spec.findings(), item, context));
    if (!item.node.IsMap()) out.pop_back();
  }
  return out;
}

void check_unique_names(Object& spec, const Pod& pod) {
  std::set<std::string> seen;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const auto& container : *list) {
      if (!container.name.empty() && !seen.insert(container.name).second)
        spec.problem(cat("two containers are called ", in_quotes(container.name)));
    }
  }
  seen.clear();
  for (const auto& volume : pod.volumes) {
    if (!volume.name.empty() && !seen.insert(volume.name).second)
      spec.problem(cat("two volumes are called ", in_quotes(volume.name)));
  }
}

void read_spec(Findings& findings, const Field& field, const NodeFacts& node, Pod& pod) {
  Object spec{findings, field};
  if (const auto policy = spec.word("restartPolicy", {"Never", "OnFailure", "Always"}))
    pod.restart = static_cast<Restart>(*policy);
  if (const auto grace = spec.integer("terminationGracePeriodSeconds", 0, kMaxGrace))
    pod.grace = std::chrono::seconds{*grace};
  read_platform(spec);
  read_namespaces(spec, pod);
  read_dns(spec, pod);
  read_names(spec, pod);
  read_scheduling(spec);
  Security defaults;
  if (const auto security = spec.take("securityContext")) {
    defaults = read_pod_security(findings, *security, pod);
    for (const auto& [name, value] : pod.sysctls) {
      const auto problem = sysctl_problem(pod, name, value);
      if (!problem.empty())
        findings.problem(security->node, cat(security->name, ".sysctls"),
                         cat(in_quotes(name), ": ", problem));
    }
  }
  for (const auto& item : spec.list("volumes")) pod.volumes.push_back(read_volume(findings, item));
  if (const auto resources = spec.take("resources"))
    pod.limits = read_resources(findings, *resources, node).limits;
  const ContainerContext context{pod, defaults, node};
  auto init = read_containers(spec, "initContainers", context);
  auto main = read_containers(spec, "containers", context);
  pod.init_containers = std::move(init);
  pod.containers = std::move(main);
  if (pod.containers.empty() && field.node.IsMap()) spec.problem("there are no containers");
  check_unique_names(spec, pod);
  spec.rest();
}

// ---- documents
// ---------------------------------------------------------------------------------------------------

struct Document {
  YAML::Node node;
  std::string kind, name;
};

// The objects of a file: its documents, and the items of those that are lists.
void collect(Findings& findings, const YAML::Node& node, std::vector<Document>& out) {
  if (node.IsNull() || !node.IsDefined()) return;
  if (!node.IsMap()) {
    findings.problem(node, "", "a document must be an object");
    return;
  }
  // Only looked at: the pod itself is read with care later.
  const auto text = [](const YAML::Node& parent, const char* key) {
    const YAML::Node child = parent[key];
    return child.IsDefined() && child.IsScalar() ? child.Scalar() : std::string{};
  };
  const auto kind = text(node, "kind");
  const YAML::Node items = node["items"];
  if ((kind == "List" || kind == "PodList") && items.IsDefined() && items.IsSequence()) {
    for (const auto& item : items) {
      if (item.IsMap() && text(item, "kind") != "List") collect(findings, item, out);
    }
    return;
  }
  const YAML::Node metadata = node["metadata"];
  out.push_back(
      {node, kind,
       metadata.IsDefined() && metadata.IsMap() ? text(metadata, "name") : std::string{}});
}

void read_pod(Findings& findings, const YAML::Node& node, const NodeFacts& facts, Pod& pod) {
  Object object{findings, {node, ""}};
  const auto version = object.take("apiVersion");
  if (!version)
    findings.problem(node, "apiVersion", "is missing");
  else if (as_string(findings, *version).value_or("v1") != "v1")
    findings.problem(version->node, version->name,
                     cat(in_quotes(version->node.Scalar()), " is not v1"));
  object.ignore("kind");
  if (const auto metadata = object.require("metadata")) read_metadata(findings, *metadata, pod);
  if (const auto spec = object.require("spec")) read_spec(findings, *spec, facts, pod);
  object.ignore("status");
  object.rest();
  check_annotations(findings, node, pod);
}

void read_documents(Findings& findings, const std::vector<YAML::Node>& nodes,
                    const NodeFacts& facts, Pod& pod) {
  std::vector<Document> documents;
  for (const auto& node : nodes) collect(findings, node, documents);
  const YAML::Node* found = nullptr;
  std::vector<std::string> others;
  for (const auto& document : documents) {
    if (document.kind == "Pod") {
      if (found != nullptr)
        findings.problem(
            document.node, "",
            cat("a second pod, ", in_quotes(document.name), ": one at a time is supported"));
      else
        found = &document.node;
      continue;
    }
    others.push_back(cat(document.kind.empty() ? "an object without kind" : document.kind, " ",
                         in_quotes(document.name)));
  }
  if (found == nullptr) {
    findings.problem(documents.empty() ? YAML::Node{} : documents[0].node, "",
                     others.empty() ? std::string{"there is no pod in the file"}
                                    : cat("there is no pod in the file, but ", join(others, ", ")));
    return;
  }
  for (const auto& document : documents) {
    if (document.kind != "Pod")
      findings.warning(
          document.node, "",
          cat(document.kind, " ", in_quotes(document.name), " is ignored: only pods are run"));
  }
  read_pod(findings, *found, facts, pod);
}

// yaml-cpp lets some tabs pass that YAML forbids as indentation, and then nests otherwise than it
// looks.
void check_tabs(std::string_view text, std::string_view file, std::vector<std::string>& problems) {
  const auto start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] == '{')
    return;  // JSON may be indented with tabs
  unsigned number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    const auto tab = line.find_first_not_of(' ');
    if (tab == std::string_view::npos || line[tab] != '\t') continue;
    const auto content = line.find_first_not_of(" \t\r");
    if (content != std::string_view::npos && line[content] != '#')
      problems.push_back(cat(file, ":", number, ":", tab + 1, ": a tab used as indentation"));
  }
}

Error all_of(const std::vector<std::string>& problems) {
  return Error::make(Code::kInvalid, join(problems, "\n"));
}

Result<Manifest> parse(std::string_view text, std::string_view file_name, const NodeFacts& facts) {
  std::vector<std::string> problems;
  check_tabs(text, file_name, problems);
  if (!problems.empty()) return all_of(problems);
  const auto nodes = YAML::LoadAll(std::string{text});
  Findings findings{file_name};
  Manifest manifest;
  read_documents(findings, nodes, facts, manifest.pod);
  if (findings.any_problem()) return all_of(findings.take_problems());
  manifest.warnings = findings.take_warnings();
  return manifest;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view file_name,
                                const NodeFacts& node) {
  const auto wrong = [&](std::string_view what) {
    return Error::make(Code::kInvalid, cat(file_name, ": ", what));
  };
  if (text.size() > kMaxBytes) return wrong("is larger than 1 MiB");
  if (!valid_utf8(text)) return wrong("is not UTF-8");
  if (text.find('\0') != std::string_view::npos) return wrong("has a NUL");
  try {
    return parse(text, file_name, node);
  } catch (const YAML::Exception& error) {
    const auto mark = error.mark;
    return Error::make(Code::kInvalid,
                       cat(file_name, ":", mark.line + 1, ":", mark.column + 1, ": ", error.msg));
  } catch (const std::exception& error) {
    return wrong(error.what());
  }
}

}  // namespace wherry::pod
