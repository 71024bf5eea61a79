#include "runtime/pod/manifest.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace wherry::pod {
namespace {

// A pod with one container; `spec` and `container` are put in, indented as they must be.
std::string text(std::string_view spec, std::string_view container) {
  std::string out = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n";
  for (const auto line : split(spec, '\n')) out += cat("  ", line, "\n");
  out += "  containers:\n  - name: c\n    image: busybox\n";
  for (const auto line : split(container, '\n')) out += cat("    ", line, "\n");
  return out;
}

std::string problems(std::string_view yaml) {
  auto manifest = parse_manifest(yaml, "f");
  return manifest.ok() ? "" : manifest.error().message();
}
std::string problems(std::string_view spec, std::string_view container) {
  return problems(text(spec, container));
}

Pod pod(const std::string& yaml) {
  auto manifest = parse_manifest(yaml, "f");
  EXPECT_TRUE(manifest.ok()) << manifest.error().message();
  return manifest.ok() ? std::move(manifest.value().pod) : Pod{};
}

TEST(Manifest, AllFieldsArriveWhereTheyBelong) {
  const auto p = pod(R"yaml(
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations: {note: "x"}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 0
  hostNetwork: true
  hostname: www
  hostAliases: [{ip: 10.0.0.1, hostnames: [a, b.c]}]
  securityContext:
    runAsUser: 1000
    fsGroup: 2000
    supplementalGroups: [5]
  volumes:
  - name: disk
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: host, hostPath: {path: /srv, type: Directory}}
  initContainers:
  - {name: i, image: busybox}
  - {name: s, image: busybox, restartPolicy: Always}
  containers:
  - name: c
    image: docker.io/library/busybox:1
    command: [sh, -c, "echo $(A) $$(A) $(NO) $A"]
    args: ["$(B)"]
    workingDir: /w
    env:
    - {name: A, value: "1"}
    - {name: B, value: "$(A)2 $(C)"}
    - {name: C, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {
  name:
    D, valueFrom : {
    resourceFieldRef : {
    resource:
      limits.cpu, divisor : 1m
    }
    }}
    resources:
      limits: {cpu: 0.5, memory: 64Mi}
      requests: {cpu: 100m}
    ports: [{containerPort: 80, name: http}]
    volumeMounts:
    - {name: mem, mountPath: /m, readOnly: true, subPath: a/b}
    - {name: host, mountPath: /h, mountPropagation: HostToContainer}
    securityContext:
      runAsUser: 2000
      runAsNonRoot: true
      readOnlyRootFilesystem: true
      allowPrivilegeEscalation: false
      capabilities: {add: [NET_ADMIN], drop: [ALL]}
      seccompProfile: {type: Unconfined}
    lifecycle: {stopSignal: SIGUSR1}
    stdin: true
    tty: yes
)yaml");
  EXPECT_EQ(p.name, "web");
  EXPECT_EQ(p.ns, "shop");
  EXPECT_EQ(p.labels.at("app"), "web");
  EXPECT_EQ(p.restart, Restart::kOnFailure);
  EXPECT_EQ(p.grace.count(), 0);
  EXPECT_EQ(p.network, Network::kHost);
  EXPECT_EQ(p.host_aliases.at(0).second, (std::vector<std::string>{"a", "b.c"}));
  EXPECT_EQ(p.fs_group, 2000U);
  EXPECT_EQ(p.supplemental_groups, (std::vector<std::uint32_t>{5}));
  ASSERT_EQ(p.volumes.size(), 3U);
  EXPECT_EQ(p.volumes[0].kind, Volume::Kind::kEmptyDir);
  EXPECT_EQ(p.volumes[1].size_limit, 1U << 20);
  EXPECT_EQ(p.volumes[2].host_type, Volume::HostType::kDirectory);
  ASSERT_EQ(p.init_containers.size(), 2U);
  EXPECT_FALSE(p.init_containers[0].restart);
  EXPECT_EQ(p.init_containers[1].restart, Restart::kAlways);
  EXPECT_EQ(p.init_containers[0].security.run_as_user, 1000U);
  const auto& c = p.containers.at(0);
  EXPECT_EQ(c.command, (std::vector<std::string>{"sh", "-c", "echo 1 $(A) $(NO) $A"}));
  EXPECT_EQ(c.args, (std::vector<std::string>{"12 $(C)"}));
  EXPECT_EQ(c.env.at(2).second, "web");
  EXPECT_EQ(c.env.at(3).second, "500");
  EXPECT_EQ(c.limits.cpu_milli, 500U);
  EXPECT_EQ(c.limits.memory_bytes, 64U << 20);
  EXPECT_EQ(c.limits.cpu_request_milli, 100U);
  EXPECT_EQ(c.mounts.at(0).sub_path, "a/b");
  EXPECT_TRUE(c.mounts.at(0).read_only);
  EXPECT_EQ(c.mounts.at(1).propagation, "rslave");
  EXPECT_EQ(c.security.run_as_user, 2000U);
  EXPECT_EQ(c.security.allow_privilege_escalation, false);
  EXPECT_EQ(c.security.seccomp, SeccompMode::kUnconfined);
  EXPECT_EQ(c.stop_signal, "SIGUSR1");
  EXPECT_TRUE(c.tty && c.stdin_open);
}

TEST(Manifest, JsonAnchorsAndLists) {
  EXPECT_EQ(pod(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},
	"spec":{"containers":[{"name":"c","image":"i"}]}})")
                .name,
            "web");
  EXPECT_EQ(pod(text("", "env: [{name: A, value: &v text}, {name: B, value: *v}]"))
                .containers[0]
                .env[1]
                .second,
            "text");
  EXPECT_EQ(pod(cat("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: "
                    "{name: x}, spec: "
                    "{containers: [{name: c, image: i}]}}\n"))
                .name,
            "x");
}

TEST(Manifest, EachProblemHasItsPlaceAndAllAreTold) {
  EXPECT_EQ(
      problems("hostnme: x\nhostNetwork: 1", "env: [{name: A, value: 1}]\nimge: x"),
      "f:5:3: spec.hostnme: no such field\n"
      "f:6:16: spec.hostNetwork: must be true or false and is a number\n"
      "f:10:28: spec.containers[0].env[0].value: must be text (\"1\" in quotes) and is a number\n"
      "f:11:5: spec.containers[0].imge: no such field");
}

TEST(Manifest, WhatIsWrongIsRefused) {
  struct Row {
    const char *spec, *container, *expected;
  };
  const Row rows[] = {
      {"", "image: twice", "is there twice"},
      {"", "resources: {limits: {cpu: -1}}", "'-1' is negative"},
      {"", "resources: {limits: {memory: 1gi}}", "'1gi' is not a quantity"},
      {"", "resources: {limits: {cpu: 1}, requests: {cpu: 2}}",
       "requests.cpu is more than limits.cpu"},
      {"", "resources: {limits: {example.com/dongle: 3}}", "there is no such resource here"},
      {"", "volumeMounts: [{name: nope, mountPath: /x}]", "the pod has no volume 'nope'"},
      {"volumes: [{name: v}]", "volumeMounts: [{name: v, mountPath: x}]",
       "mountPath must be absolute"},
      {"volumes: [{name: v}]", "volumeMounts: [{name: v, mountPath: /x, subPath: ../y}]",
       "without '..'"},
      {"volumes: [{name: v}]",
       "volumeMounts: [{name: v, mountPath: /x, mountPropagation: Bidirectional}]", "privileged"},
      {"volumes: [{name: v}]",
       "volumeMounts: [{name: v, mountPath: /x}, {name: v, mountPath: /x/}]", "already"},
      {"volumes: [{name: v, secret: {secretName: s}}]", "",
       "volumes of the kind secret are not supported"},
      {"volumes: [{name: V}]", "", "is not a DNS label"},
      {"volumes: [{name: v, hostPath: {path: /x, type: Foo}}]", "",
       "'Foo' is not one of DirectoryOrCreate, Directory, "},
      {"volumes: [{name: v}, {name: v}]", "", "two volumes are called 'v'"},
      {"initContainers: [{name: c, image: i}]", "", "two containers are called 'c'"},
      {"restartPolicy: always", "", "'always' is not one of Never, OnFailure, Always"},
      {"hostUsers: false", "", "user namespaces are not supported"},
      {"shareProcessNamespace: true", "", "a PID namespace for the pod is not supported"},
      {"securityContext: {seLinuxOptions: {level: x}}", "", "SELinux labels are not supported"},
      {"", "securityContext: {seccompProfile: {type: Localhost, localhostProfile: p.json}}",
       "'p.json'"},
      {"", "securityContext: {runAsUser: 0, runAsNonRoot: true}", "runAsUser is 0"},
      {"", "securityContext: {runAsUser: 010}", "two ways"},
      {"", "securityContext: {runAsUser: 4294967296}", "must be from 0 to"},
      {"", "securityContext: {runAsUser: \"1\"}", "must be a whole number and is text"},
      {"", "securityContext: {privileged: true, allowPrivilegeEscalation: false}",
       "privilege escalation"},
      {"runtimeClassName: kata", "", "runtimeClassName: 'kata' is not known here"},
      {"os: {name: windows}", "", "'windows' is not what this is"},
      {"nodeSelector: {kubernetes.io/os: windows}", "", "'windows' is not what this is"},
      {"schedulingGates: [{name: x}]", "", "nobody here lifts it"},
      {"securityContext: {sysctls: [{name: kernel.panic, value: \"1\"}]}", "",
       "not of a namespace"},
      {"", "livenessProbe: {gRPC: {port: 1}}", "livenessProbe.gRPC: no such field"},
      {"", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
       "secret 's' is not supplied"},
      {"", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]",
       "'status.podIP' is not known"},
      {"", "env: [{name: \"A=B\", value: x}]", "is not a name of a variable"},
      {"", "envFrom: [{configMapRef: {name: m}}]", "'m' is not supplied"},
      {"", "lifecycle: {stopSignal: SIGNONE}", "'SIGNONE' is not a signal"},
      {"", "ports: [{containerPort: 70000}]", "must be from 1 to 65535"},
      {"dnsPolicy: None", "", "dnsPolicy None needs a nameserver"},
      {"dnsConfig: {searches: [\"a b\"]}", "", "blanks"},
  };
  for (const auto& row : rows) {
    const auto got = problems(row.spec, row.container);
    EXPECT_NE(got.find(row.expected), std::string::npos)
        << row.spec << " | " << row.container << "\n"
        << got;
  }
}

TEST(Manifest, WhatIsSafeToLeaveOutIsAWarning) {
  struct Row {
    const char *spec, *container, *expected;
  };
  const Row rows[] = {{"nodeName: n", "", "f:5:13: spec.nodeName: is ignored: there is one node"},
                      {"tolerations: [{key: x}]", "", "spec.tolerations: is ignored"},
                      {"", "livenessProbe: {exec: {command: [x]}}",
                       "livenessProbe: is ignored: probes are not run"},
                      {"", "lifecycle: {preStop: {exec: {command: [x]}}}", "preStop: is ignored"},
                      {"", "ports: [{containerPort: 1, hostPort: 2}]", "hostPort: is ignored"},
                      {"", "envFrom: [{secretRef: {name: m, optional: true}}]", "is left out"}};
  for (const auto& row : rows) {
    const auto manifest = parse_manifest(text(row.spec, row.container), "f");
    ASSERT_TRUE(manifest.ok()) << manifest.error().message();
    ASSERT_EQ(manifest.value().warnings.size(), 1U) << row.spec << row.container;
    EXPECT_NE(manifest.value().warnings[0].find(row.expected), std::string::npos)
        << manifest.value().warnings[0];
  }
}

TEST(Manifest, Documents) {
  const auto good = text("", "");
  const std::pair<std::string, const char*> rows[] = {
      {"", "f: there is no pod in the file"},
      {"# nothing\n", "f: there is no pod in the file"},
      {"a: [", "f:1:1: end of sequence"},
      {"just text", "a document must be an object"},
      {"kind: Job\nmetadata: {name: j}\n", "f:1:1: there is no pod in the file, but Job 'j'"},
      {good + "---\n" + good, "a second pod, 'web': one at a time is supported"},
      {"apiVersion: v2\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: i}]}",
       "'v2' is not v1"},
      {"apiVersion: v1\nkind: Pod\nspec:\n\tx: 1\n", "f:4:1: a tab used as indentation"},
      {"apiVersion: v1\nkind: Pod\nmetadata: {name: Web_1}\nspec: {containers: [{name: C, image: "
       "i}]}",
       "name 'Web_1'"},
      {std::string("a\0b", 3), "has a NUL"},
      {"\xff", "is not UTF-8"},
      {std::string((1 << 20) + 1, ' '), "is larger than 1 MiB"},
      {std::string(100'000, '['), "f:"}};
  for (const auto& [yaml, expected] : rows) {
    const auto got = problems(yaml);
    EXPECT_NE(got.find(expected), std::string::npos) << yaml.substr(0, 80) << "\n" << got;
  }
  const auto beside = parse_manifest("kind: Namespace\nmetadata: {name: n}\n---\n" + good, "f");
  ASSERT_TRUE(beside.ok());
  EXPECT_EQ(beside.value().warnings,
            (std::vector<std::string>{"f:1:1: Namespace 'n' is ignored: only pods are run"}));
}

TEST(Manifest, RequestsAreComparedWithTheNode) {
  const auto yaml = text("", "resources: {requests: {cpu: 3, memory: 2Gi}}");
  EXPECT_TRUE(parse_manifest(yaml, "f").ok());
  EXPECT_TRUE(parse_manifest(yaml, "f", {3000, 2ULL << 30}).ok());
  EXPECT_FALSE(parse_manifest(yaml, "f", {2999, {}}).ok());
  EXPECT_FALSE(parse_manifest(yaml, "f", {{}, (2ULL << 30) - 1}).ok());
}

}  // namespace
}  // namespace wherry::pod
