// image ls, rm.
#include "base/json.h"
#include "base/text.h"
#include "runtime/image/store.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

Json image_json(const image::Image& image) {
  return {{"names", image.names},
          {"digest", image.digest.text()},
          {"size", image.size},
          {"layers", image.layer_dirs.size()}};
}

}  // namespace

Result<int> image_list(const Global& global, const OutputOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto images = TRY(TRY(image::Store::open(global.places.root)).list());
  if (format == Format::kJson) {
    Json out = Json::array();
    for (const auto& image : images)
      out.push_back(options.quiet ? Json(image.digest.text()) : image_json(image));
    TRY(print_json(out));
    return 0;
  }
  if (options.quiet) {
    std::string out;
    for (const auto& image : images) out += image.digest.text() + "\n";
    TRY(print(out));
    return 0;
  }
  Table table{{"NAME", "DIGEST", "LAYERS", "SIZE"}};
  for (const auto& image : images) {
    const auto digest = image.digest.text();
    const auto add = [&](const std::string& name) {
      table.add({name, digest.substr(0, digest.find(':') + 13),
                 std::to_string(image.layer_dirs.size()), human_size(image.size)});
    };
    if (image.names.empty()) add("<none>");
    for (const auto& name : image.names) add(name);
  }
  TRY(print(table.text()));
  return 0;
}

Result<int> image_remove(const Global& global, const ImageRemoveOptions& options) {
  auto store = TRY(image::Store::open(global.places.root));
  std::vector<image::Use> uses;
  for (const auto& pod : TRY(TRY(Pods::open(global.places)).list()))
    for (const auto& container : pod.containers)
      if (!container.image_digest.empty())
        uses.push_back({container.image_digest, cat("pod '", pod.name, "'")});
  int status = 0;
  for (const auto& name : options.names) {
    const auto removed = store.remove(name, uses);
    if (removed.ok()) {
      TRY(print_line(removed.value().empty() ? name : join(removed.value(), "\n")));
      continue;
    }
    print_error(removed.error());
    status = 125;
  }
  return status;
}

}  // namespace wherry::cli
