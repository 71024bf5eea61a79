// Entries of a tar archive as files below one directory. Nothing is ever made, changed or read
// outside of it, whatever the archive says (SEC-70, SEC-71, SEC-73).
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/image/layer_tree.h"
#include "runtime/image/tar_reader.h"

namespace wherry::image {

enum class Whiteouts : std::uint8_t {
  kOverlay,  // OCI whiteouts (".wh.name") become overlayfs's: char device 0:0,
             // trusted.overlay.opaque
  kNone,     // such a name is a name
};

class Extractor {
 public:
  // `root` is empty at first; both descriptors are as LayerTree wants them.
  Extractor(int root, int below, Whiteouts whiteouts) : tree_{root, below}, whiteouts_{whiteouts} {}

  // Makes one entry; reads its content from `reader`. An entry replaces what an earlier one of the
  // same archive made at its path; only a directory over a directory keeps what is in there.
  Result<> add(const TarEntry& entry, TarReader& reader);
  Result<> finish() { return tree_.set_times(); }

 private:
  struct Target {
    int dir = -1;  // of the tree
    std::string name;
  };
  enum class Before : std::uint8_t { kNothing, kWhiteout, kSomething };

  Result<> add_entry(std::vector<std::string> parts, const TarEntry& entry, TarReader& reader);
  Result<Target> target(std::vector<std::string> parts);
  Result<Before> clear(const Target& at);
  Result<> add_root(const TarEntry& entry);
  Result<> add_whiteout(const std::vector<std::string>& parts);
  Result<> hide(const Target& at);
  Result<> add_directory(const Target& at, const TarEntry& entry);
  Result<> add_file(const Target& at, const TarEntry& entry, TarReader& reader);
  Result<> add_hardlink(const std::vector<std::string>& parts, const TarEntry& entry);
  Result<> copy_up(const Target& at);
  Result<> add_node(const Target& at, const TarEntry& entry);

  LayerTree tree_;
  Whiteouts whiteouts_;
};

// All entries of `reader`, and the times of the directories.
Result<> extract_all(TarReader& reader, Extractor& extractor);

}  // namespace wherry::image
