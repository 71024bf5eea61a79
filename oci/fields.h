// The top of config.json of the runtime-spec 1.3 (config.md): version, root, mounts, hooks.
#pragma once
#include "oci/fields_linux.h"
#include "oci/fields_process.h"

namespace wherry::oci {

template <class Visitor, Is<Root> T>
void members(Visitor& v, T& root) {
  v.required("path", root.path);
  v.optional("readonly", root.readonly);
}

template <class Visitor, Is<Mount> T>
void members(Visitor& v, T& mount) {
  v.required("destination", mount.destination);
  v.optional("type", mount.type);
  v.optional("source", mount.source);
  v.optional("options", mount.options);
  v.optional("uidMappings", mount.uid_mappings);
  v.optional("gidMappings", mount.gid_mappings);
}

template <class Visitor, Is<Hook> T>
void members(Visitor& v, T& hook) {
  v.required("path", hook.path);
  v.optional("args", hook.args);
  v.optional("env", hook.env);
  v.optional("timeout", hook.timeout);
}

template <class Visitor, Is<Hooks> T>
void members(Visitor& v, T& hooks) {
  v.optional("prestart", hooks.prestart);
  v.optional("createRuntime", hooks.create_runtime);
  v.optional("createContainer", hooks.create_container);
  v.optional("startContainer", hooks.start_container);
  v.optional("poststart", hooks.poststart);
  v.optional("poststop", hooks.poststop);
}

template <class Visitor, Is<Spec> T>
void members(Visitor& v, T& spec) {
  v.required("ociVersion", spec.oci_version);
  v.optional("process", spec.process);
  v.optional("root", spec.root);
  v.optional("hostname", spec.hostname);
  v.optional("domainname", spec.domainname);
  v.optional("mounts", spec.mounts);
  v.optional("hooks", spec.hooks);
  v.optional("linux", spec.linux_);
  v.optional("annotations", spec.annotations);
  for (const auto* platform : {"freebsd", "solaris", "vm", "windows", "zos"})
    v.foreign(platform, spec.linux_.has_value());
}

}  // namespace wherry::oci
