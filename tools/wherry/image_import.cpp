#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/store.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

void progress(std::string_view text) {
  sys::write_all(2, cat(harmless(text), "\n"), "stderr").ignore("there is nobody left to tell");
}

}  // namespace

Result<int> image_import(const Global& global, const ImageImportOptions& options) {
  auto store = TRY(image::Store::open(global.places.root));
  progress(cat("importing '", options.path, "'"));
  const auto images = TRY(store.import(options.path, options.name));
  for (const auto& image : images) {
    progress(cat(join(image.names, ", "), ": ", image.layer_dirs.size(),
                 image.layer_dirs.size() == 1 ? " layer, " : " layers, ", human_size(image.size)));
    TRY(print_line(image.digest.text()));
  }
  return 0;
}

}  // namespace wherry::cli
