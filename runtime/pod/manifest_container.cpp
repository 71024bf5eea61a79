// One container of a manifest.
#include <algorithm>

#include "base/path.h"
#include "runtime/pod/machine.h"
#include "runtime/pod/manifest_parts.h"

namespace wherry::pod {
namespace {

// A handler's own fields are checked, so that a wrong word is told of even while probes are not
// run.
void read_handler(Object& object, std::size_t& handlers) {
  auto& findings = object.findings();
  if (const auto field = object.take("exec")) {
    ++handlers;
    Object inner{findings, *field};
    static_cast<void>(inner.strings("command"));
    inner.rest();
  }
  for (const auto* kind : {"httpGet", "tcpSocket", "grpc", "sleep"}) {
    const auto field = object.take(kind);
    if (!field) continue;
    ++handlers;
    Object inner{findings, *field};
    for (const auto* key : {"port", "path", "host", "scheme", "httpHeaders", "service", "seconds"})
      inner.ignore(key);
    inner.rest();
  }
}

void read_probe(Object& container, std::string_view key) {
  const auto field = container.take(key);
  if (!field) return;
  auto& findings = container.findings();
  Object object{findings, *field};
  std::size_t handlers = 0;
  read_handler(object, handlers);
  for (const auto* number :
       {"initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold",
        "failureThreshold", "terminationGracePeriodSeconds"})
    static_cast<void>(object.integer(number, 0, INT32_MAX));
  object.rest();
  if (handlers != 1) object.problem("must have one handler");
  findings.warning(field->node, field->name, "is ignored: probes are not run");
}

void read_lifecycle(Findings& findings, const Field& field, Container& container) {
  Object object{findings, field};
  for (const auto* key : {"postStart", "preStop"}) {
    const auto hook = object.take(key);
    if (!hook) continue;
    Object inner{findings, *hook};
    std::size_t handlers = 0;
    read_handler(inner, handlers);
    inner.rest();
    if (handlers != 1) inner.problem("must have one handler");
    findings.warning(hook->node, hook->name, "is ignored: hooks of containers are not run");
  }
  if (const auto signal = object.take("stopSignal")) {
    container.stop_signal = as_string(findings, *signal).value_or("");
    const auto number = signal_number(container.stop_signal);
    if (!container.stop_signal.empty() && !number.ok())
      findings.problem(signal->node, signal->name, number.error().message());
  }
  object.rest();
}

void read_ports(Object& object, Container& container) {
  auto& findings = object.findings();
  for (const auto& item : object.list("ports")) {
    Object inner{findings, item};
    Port port;
    port.name = inner.string("name");
    if (!port.name.empty() && (!is_dns_label(port.name) || port.name.size() > 15))
      inner.problem(cat("name ", in_quotes(port.name), " must be at most 15 of a-z, 0-9 and -"));
    if (const auto number = inner.integer("containerPort", 1, 65535))
      port.container_port = static_cast<std::uint16_t>(*number);
    else
      inner.problem("containerPort is missing or wrong");
    const auto host_port = inner.take("hostPort");
    if (host_port) {
      const auto number = as_int(findings, *host_port, 0, 65535).value_or(0);
      port.host_port = static_cast<std::uint16_t>(number);
      if (number > 0)
        findings.warning(host_port->node, host_port->name, "is ignored: ports are not published");
    }
    port.host_ip = inner.string("hostIP");
    const auto protocol = inner.word("protocol", {"TCP", "UDP", "SCTP"}).value_or(0);
    port.protocol = protocol == 0 ? "TCP" : protocol == 1 ? "UDP" : "SCTP";
    inner.rest();
    container.ports.push_back(std::move(port));
  }
}

bool climbs(std::string_view path) {
  const auto parts = components(path);
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

VolumeMount read_mount(Findings& findings, const Field& field, const Pod& pod,
                       const Container& container) {
  VolumeMount mount;
  Object object{findings, field};
  mount.volume = object.required_string("name");
  mount.mount_path = object.required_string("mountPath");
  mount.sub_path = object.string("subPath");
  const auto expression = object.string("subPathExpr");
  mount.read_only = object.boolean("readOnly").value_or(false);
  object.ignore("recursiveReadOnly");  // read-only mounts are so in any case
  const auto propagation =
      object.word("mountPropagation", {"None", "HostToContainer", "Bidirectional"});
  object.rest();
  const bool known = std::any_of(pod.volumes.begin(), pod.volumes.end(),
                                 [&](const auto& volume) { return volume.name == mount.volume; });
  if (!known && !mount.volume.empty())
    object.problem(cat("the pod has no volume ", in_quotes(mount.volume)));
  if (!mount.mount_path.empty() && (mount.mount_path[0] != '/' || climbs(mount.mount_path)))
    object.problem("mountPath must be absolute, without '..'");
  if (!expression.empty() && !mount.sub_path.empty())
    object.problem("has both subPath and subPathExpr");
  if (!expression.empty()) mount.sub_path = expand(expression, container.env);
  if (climbs(mount.sub_path) || mount.sub_path.starts_with('/'))
    object.problem("the sub-path must be relative, without '..'");
  if (propagation == 1U) mount.propagation = "rslave";
  if (propagation == 2U) {
    mount.propagation = "rshared";
    if (!container.security.privileged.value_or(false))
      object.problem("mountPropagation Bidirectional needs a privileged container");
  }
  return mount;
}

void read_env_from(Object& object) {
  auto& findings = object.findings();
  for (const auto& item : object.list("envFrom")) {
    Object inner{findings, item};
    inner.ignore("prefix");
    for (const auto* key : {"configMapRef", "secretRef"}) {
      const auto field = inner.take(key);
      if (!field) continue;
      Object ref{findings, *field};
      const auto name = ref.string("name");
      if (ref.boolean("optional").value_or(false))
        findings.warning(field->node, field->name,
                         cat("is left out: ", in_quotes(name), " is not supplied"));
      else
        findings.problem(field->node, field->name,
                         cat(in_quotes(name), " is not supplied: not supported"));
      ref.rest();
    }
    inner.rest();
  }
}

// Without one of its own the pod's counts, and Always means for an init container: until it
// succeeds.
void read_restart(Object& object, Container& container) {
  object.refuse("restartPolicyRules", "restart rules are not supported");
  const auto policy = object.word("restartPolicy", {"Never", "OnFailure", "Always"});
  if (policy) container.restart = static_cast<Restart>(*policy);
}

void read_image(Object& object, Container& container) {
  container.image = object.required_string("image");
  if (!container.image.empty() && !is_image_reference(container.image))
    object.problem(cat("image ", in_quotes(container.image), " is not an image reference"));
  const auto policy_field = object.take("imagePullPolicy");
  if (!policy_field) return;
  const auto policy = as_string(object.findings(), *policy_field).value_or("");
  if (policy == "Always")
    object.findings().warning(policy_field->node, policy_field->name,
                              "is ignored: the image of the store is used");
  else if (policy != "IfNotPresent" && policy != "Never")
    object.findings().problem(policy_field->node, policy_field->name,
                              cat(in_quotes(policy), " is not one of Always, IfNotPresent, Never"));
}

}  // namespace

Container read_container(Findings& findings, const Field& field, const ContainerContext& context) {
  Container container;
  Object object{findings, field};
  container.name = object.required_string("name");
  if (!container.name.empty() && !is_dns_label(container.name))
    object.problem(cat("name ", in_quotes(container.name), " is not a DNS label"));
  read_image(object, container);
  container.security = context.defaults;
  if (const auto security = object.take("securityContext"))
    read_container_security(findings, *security, container.security);
  ResourceReading resources;
  if (const auto given = object.take("resources"))
    resources = read_resources(findings, *given, context.node);
  container.limits = resources.limits;
  read_env_from(object);
  container.env = read_env(findings, object.list("env"), context.pod, resources, container.name);
  for (const auto& word : object.strings("command"))
    container.command.push_back(expand(word, container.env));
  for (const auto& word : object.strings("args"))
    container.args.push_back(expand(word, container.env));
  container.working_dir = object.string("workingDir");
  if (!container.working_dir.empty() && container.working_dir[0] != '/')
    object.problem("workingDir must be absolute");
  read_ports(object, container);
  for (const auto& item : object.list("volumeMounts")) {
    auto mount = read_mount(findings, item, context.pod, container);
    const bool taken =
        std::any_of(container.mounts.begin(), container.mounts.end(), [&](const auto& other) {
          return components(other.mount_path) == components(mount.mount_path);
        });
    if (taken)
      findings.problem(item.node, item.name,
                       cat("something is mounted at ", in_quotes(mount.mount_path), " already"));
    container.mounts.push_back(std::move(mount));
  }
  object.refuse("volumeDevices", "block volumes are not supported");
  for (const auto* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    read_probe(object, probe);
  if (const auto lifecycle = object.take("lifecycle"))
    read_lifecycle(findings, *lifecycle, container);
  read_restart(object, container);
  object.ignore("resizePolicy");
  object.warn("terminationMessagePath", "termination messages are not read");
  object.ignore("terminationMessagePolicy");
  container.stdin_open = object.boolean("stdin").value_or(false);
  container.stdin_once = object.boolean("stdinOnce").value_or(false);
  container.tty = object.boolean("tty").value_or(false);
  object.rest();
  return container;
}

}  // namespace wherry::pod
