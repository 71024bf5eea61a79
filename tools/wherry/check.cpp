// pod check: a manifest as the plan that it comes to.
#include <unistd.h>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/store.h"
#include "tools/wherry/manifest_file.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

constexpr std::size_t kLongestManifest = 1024 * 1024;
constexpr int kHasProblems = 1;

pod::NodeFacts node_facts() {
  pod::NodeFacts facts;
  if (const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN); cpus > 0)
    facts.cpu_milli = static_cast<std::uint64_t>(cpus) * 1000;
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0)
    facts.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  return facts;
}

// Whether an image is in the store. Checking makes nothing, so a store that is not there stays so.
class Images {
 public:
  static Images of(const std::string& root) {
    Images images;
    if (::geteuid() != 0) {
      images.unknown_ = "not looked up: that needs root";
    } else if (sys::fstatat(AT_FDCWD, root).ok()) {
      auto store = image::Store::open(root);
      if (store.ok())
        images.store_ = std::move(store).value();
      else
        images.unknown_ = store.error().message();
    }
    return images;
  }
  std::string state_of(const std::string& name) const {
    if (!unknown_.empty()) return unknown_;
    if (!store_) return "not in the store";
    const auto found = store_->find(name);
    if (found.ok()) return "in the store";
    return found.error().code() == Code::kNotFound ? "not in the store" : found.error().message();
  }

 private:
  std::optional<image::Store> store_;
  std::string unknown_;
};

Json mount_json(const pod::Pod& pod, const pod::VolumeMount& mount) {
  Json out{{"path", mount.mount_path}, {"volume", mount.volume}};
  for (const auto& volume : pod.volumes) {
    if (volume.name != mount.volume) continue;
    const bool host = volume.kind == pod::Volume::Kind::kHostPath;
    out["source"] = host            ? volume.host_path
                    : volume.memory ? "empty directory in memory"
                                    : "empty directory";
  }
  if (!mount.sub_path.empty()) out["subPath"] = mount.sub_path;
  out["readOnly"] = mount.read_only;
  return out;
}

Json limits_json(const pod::Limits& limits) {
  Json out = Json::object();
  if (limits.memory_bytes) out["memory"] = *limits.memory_bytes;
  if (limits.cpu_milli) out["cpuMilli"] = *limits.cpu_milli;
  if (limits.pids) out["pids"] = *limits.pids;
  return out;
}

Json container_json(const pod::Pod& pod, const pod::Container& container, bool init,
                    const Images& images) {
  Json out{{"name", container.name},
           {"init", init},
           {"image", container.image},
           {"imageState", images.state_of(container.image)},
           {"command", container.command},
           {"args", container.args},
           {"limits", limits_json(container.limits)}};
  Json mounts = Json::array();
  for (const auto& mount : container.mounts) mounts.push_back(mount_json(pod, mount));
  out["mounts"] = std::move(mounts);
  return out;
}

std::string restart_word(pod::Restart restart) {
  switch (restart) {
    case pod::Restart::kNever:
      return "Never";
    case pod::Restart::kOnFailure:
      return "OnFailure";
    case pod::Restart::kAlways:
      return "Always";
  }
  return {};
}

Json plan_of(const pod::Manifest& manifest, const Images& images) {
  const auto& pod = manifest.pod;
  Json out{{"name", pod.name},
           {"namespace", pod.ns},
           {"restartPolicy", restart_word(pod.restart)},
           {"warnings", manifest.warnings}};
  Json containers = Json::array();
  for (const auto& one : pod.init_containers)
    containers.push_back(container_json(pod, one, true, images));
  for (const auto& one : pod.containers)
    containers.push_back(container_json(pod, one, false, images));
  out["containers"] = std::move(containers);
  return out;
}

std::string words_of(const Json& list) {
  std::string out;
  for (const auto& word : list)
    out += cat(out.empty() ? "" : " ", in_quotes(word.get<std::string>()));
  return out;
}

std::string command_text(const Json& container) {
  const auto command = words_of(container["command"]), args = words_of(container["args"]);
  if (!command.empty()) return args.empty() ? command : cat(command, " ", args);
  return args.empty() ? "the image's" : cat("the image's entry point, if any, with ", args);
}

std::string limits_text(const Json& limits) {
  std::string out;
  for (const auto& [key, value] : limits.items()) {
    const auto number = value.get<std::int64_t>();
    out += cat(out.empty() ? "" : ", ");
    if (key == "memory")
      out += cat("memory ", human_size(static_cast<std::uint64_t>(number)));
    else if (key == "cpuMilli")
      out += cat("cpu ", number, "m");
    else
      out += number < 0 ? std::string{"processes without limit"} : cat("processes ", number);
  }
  return out.empty() ? "none" : out;
}

std::string container_text(const Json& container) {
  std::string out = cat(container["init"].get<bool>() ? "init container " : "container ",
                        json_string_or(container, "name", ""), "\n");
  const auto line = [&](std::string_view what, const std::string& text) {
    out += cat("  ", what, ": ", harmless(text), "\n");
  };
  line("image", cat(json_string_or(container, "image", ""), " (",
                    json_string_or(container, "imageState", ""), ")"));
  line("command", command_text(container));
  line("limits", limits_text(container["limits"]));
  for (const auto& mount : container["mounts"]) {
    const auto sub_path = json_string_or(mount, "subPath", "");
    line("mount",
         cat(json_string_or(mount, "path", ""), " <- ", json_string_or(mount, "volume", ""), " (",
             json_string_or(mount, "source", ""), sub_path.empty() ? "" : ", below it ", sub_path,
             ")", json_bool_or(mount, "readOnly", false) ? ", read-only" : ""));
  }
  return out;
}

std::string plan_text(const Json& plan) {
  std::string out;
  for (const auto& warning : plan["warnings"])
    out += cat("warning: ", harmless(warning.get<std::string>()), "\n");
  out += cat("pod ", json_string_or(plan, "name", ""),
             "\n  namespace: ", json_string_or(plan, "namespace", ""),
             "\n  restart policy: ", json_string_or(plan, "restartPolicy", ""), "\n");
  for (const auto& container : plan["containers"]) out += container_text(container);
  return cat(out, "ok\n");
}

}  // namespace

Result<ManifestText> read_manifest(const std::string& file) {
  const bool is_stdin = file == "-";
  UniqueFd opened;
  if (!is_stdin) opened = TRY(sys::openat(AT_FDCWD, file, O_RDONLY | O_NOCTTY));
  ManifestText manifest;
  manifest.name = is_stdin ? "stdin" : file;
  manifest.text =
      TRY(sys::read_to_end(is_stdin ? 0 : opened.get(), kLongestManifest, manifest.name));
  return manifest;
}

Result<pod::Manifest> parse_manifest(const ManifestText& manifest) {
  return pod::parse_manifest(manifest.text, manifest.name, node_facts());
}

Result<int> pod_check(const Global& global, const ManifestOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto text = TRY(read_manifest(options.file));
  const auto manifest = parse_manifest(text);
  if (!manifest.ok()) {
    print_error(manifest.error());
    return kHasProblems;
  }
  const auto plan = plan_of(manifest.value(), Images::of(global.places.root));
  TRY(format == Format::kJson ? print_json(plan) : print(plan_text(plan)));
  return 0;
}

}  // namespace wherry::cli
