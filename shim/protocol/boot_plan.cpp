#include "shim/protocol/boot_plan.h"

#include "base/json.h"
#include "base/text.h"

namespace wherry::shim {

Json to_json(const BootPlan& plan) {
  Json images = Json::object();
  for (const auto& [name, image] : plan.images)
    images[name] = {{"name", image.name},
                    {"digest", image.digest},
                    {"config", dump_json(oci::to_json(image.config))},
                    {"layers", image.layer_dirs}};
  return {{"version", 1},
          {"id", plan.id},
          {"name", plan.name},
          {"namespace", plan.ns},
          {"root", plan.root},
          {"state", plan.state},
          {"cgroupParent", plan.cgroup_parent},
          {"images", images}};
}

Result<BootPlan> boot_plan_from_json(const Json& value) {
  if (!value.is_object() || json_int_or(value, "version", 0) != 1)
    return Error::make(Code::kInvalid, "plan: of a version that is not ours");
  BootPlan plan;
  plan.id = TRY(json_string(value, "id"));
  plan.name = TRY(json_string(value, "name"));
  plan.ns = TRY(json_string(value, "namespace"));
  plan.root = TRY(json_string(value, "root"));
  plan.state = TRY(json_string(value, "state"));
  plan.cgroup_parent = TRY(json_string(value, "cgroupParent"));
  const auto images = value.find("images");
  if (images == value.end() || !images->is_object())
    return Error::make(Code::kInvalid, "plan: 'images' is missing");
  for (const auto& [name, entry] : images->items()) {
    ImagePlan image;
    image.name = json_string_or(entry, "name", "");
    image.digest = json_string_or(entry, "digest", "");
    image.config = TRY_CTX(oci::parse_image_config(TRY(json_string(entry, "config"))),
                           cat("plan: image of '", name, "'"));
    const auto layers = entry.find("layers");
    if (layers != entry.end() && layers->is_array())
      for (const auto& layer : *layers)
        if (layer.is_string()) image.layer_dirs.push_back(layer.get<std::string>());
    plan.images.emplace(name, std::move(image));
  }
  return plan;
}

}  // namespace wherry::shim
