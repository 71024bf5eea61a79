// The directory of a layer while it is being filled, seen together with the layers below it: where
// a path leads.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys.h"

namespace wherry::image {

class LayerTree {
 public:
  // `root` is a directory that nobody else can reach; `below` the merged view of the lower layers,
  // or -1. Both stay the caller's and must outlive the tree.
  LayerTree(int root, int below) : root_{root}, below_{below} {}

  int root() const { return root_; }
  bool has_below() const { return below_ >= 0; }

  // The directory (O_PATH) at `parts`, links followed inside the root, made with its parents when
  // this layer does not have it: then like the one of the lower layers that it covers. Valid until
  // the next call. kInvalid when it is deeper than 256 directories.
  enum class Missing : std::uint8_t { kMake, kFail };  // kFail: ENOENT where no layer has it
  Result<int> directory(const std::vector<std::string>& parts, Missing missing = Missing::kMake);
  // To be called when something that was there is taken away: a path may lead elsewhere from now
  // on. What directory() gave stays valid.
  void forget() { cache_holds_ = false; }

  // Hides what lower layers have in `dir`, by overlayfs's attribute.
  Result<> make_opaque(int dir) const;
  // Whether lower layers have anything at `name` in `dir` that would show through. In doubt, yes.
  Result<bool> covers(int dir, const std::string& name) const;
  Result<std::vector<std::string>> lower_names() const;  // at the top of the lower layers
  // The file or directory that lower layers have at `name` in `dir` (O_PATH); kNotFound.
  Result<UniqueFd> lower(int dir, const std::string& name) const;

  // The times of directories are set at the end, since filling them changes these.
  void set_time_later(std::string path, const timespec& mtime) {
    times_.emplace_back(std::move(path), mtime);
  }
  Result<> set_times();

 private:
  Result<UniqueFd> walk(const std::vector<std::string>& parts, Missing missing);
  Result<UniqueFd> step(int at, const std::string& path, const std::string& name, Missing missing,
                        std::string& link);
  Result<UniqueFd> make_implied(int at, const std::string& path, const std::string& name, int like);
  Result<std::string> path_of(int dir) const;

  int root_, below_;
  bool cache_holds_ = false;
  std::string cached_path_;
  UniqueFd cached_;
  std::vector<std::pair<std::string, timespec>> times_;
};

bool is_whiteout(const struct stat& st);  // of overlayfs: a character device 0:0
// The object at `name` in `dir`, or no value when there is none; links are not followed.
Result<std::optional<struct stat>> look(int dir, const std::string& name);

}  // namespace wherry::image
