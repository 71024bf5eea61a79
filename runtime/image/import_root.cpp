// A root file system that is no image yet: one layer, and a configuration made here.
#include <chrono>

#include "base/clock.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "runtime/image/import_parts.h"
#include "runtime/image/layers.h"
#include "runtime/image/metadata.h"
#include "runtime/image/store.h"
#include "runtime/image/tar_writer.h"

namespace wherry::image {

Result<std::vector<Imported>> import_root(Content& content, int tar, const std::string& path,
                                          const std::string& reference) {
  const auto name = TRY(normalise_reference(reference.empty() ? stem(path) : reference));
  const auto st = TRY(sys::fstat(tar, path));
  auto layer = TRY(content.put_unknown(tar, path));
  layer.media_type = TRY(layer_media_type(tar));
  const auto blob = TRY(content.open_blob(layer.digest));
  oci::ImageConfig config;
  config.architecture = host_architecture();
  config.os = "linux";
  // Of the file, not of the import: the same file is the same image.
  config.created = rfc3339(std::chrono::system_clock::from_time_t(st.st_mtime));
  config.cmd = {"/bin/sh"};
  config.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  config.diff_ids.push_back(TRY(unpack_layer(content, {}, blob.get(), {}, {})));
  const auto config_blob = TRY(content.put_bytes(dump_json(oci::to_json(config))));
  const auto digest = TRY(put_manifest(content, config_blob, {layer}));
  return std::vector<Imported>{{{name}, digest}};
}

Result<std::vector<Imported>> import_root_directory(Content& content, int dir,
                                                    const std::string& path,
                                                    const std::string& reference) {
  const auto scratch = TRY(Scratch::make(content.tmp()));
  const auto tar =
      TRY(sys::openat(scratch.fd(), "root.tar", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY_CTX(pack_directory(dir, tar.get()), cat("pack ", in_quotes(path)));
  const auto mtime = TRY(sys::fstat(dir, path)).st_mtim;
  TRY(set_mtime(tar.get(), mtime, path));
  return import_root(content, tar.get(), path, reference);
}

}  // namespace wherry::image
