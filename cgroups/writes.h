// How the parts of to_writes() share their work. Inside cgroups/ only.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cgroups/cgroups.h"
#include "oci/spec.h"

namespace wherry::cgroups {

// "linux.resources.<field>: <why>".
Error unsupported(std::string_view field, std::string_view why);
Error invalid(std::string_view field, std::string_view why);

// The writes so far, and who drives which controller on this host.
class Writes {
 public:
  explicit Writes(const Hierarchies& hierarchies) : hierarchies_{hierarchies} {}

  enum class Side : std::uint8_t { kV1, kV2 };
  // Who takes a setting of `controller` (its v2 name); kUnsupported with the field when nobody
  // does.
  Result<Side> side(std::string_view controller, std::string_view field) const;

  void v1(std::string_view controller, std::string file, std::string value) {
    list_.push_back({std::string{controller}, std::move(file), std::move(value)});
  }
  void v2(std::string file, std::string value, std::string not_below = {}) {
    list_.push_back({"", std::move(file), std::move(value), std::move(not_below)});
  }
  const Hierarchies& hierarchies() const { return hierarchies_; }
  std::vector<Write> take() && { return std::move(list_); }

 private:
  const Hierarchies& hierarchies_;
  std::vector<Write> list_;
};

std::string v1_name(std::string_view controller);  // "io" -> "blkio"

Result<> write_memory(const oci::MemoryResources& memory, Writes& out);
Result<> write_cpu(const oci::CpuResources& cpu, Writes& out);
Result<> write_block_io(const oci::BlockIo& io, Writes& out);
Result<> write_hugepages(const std::vector<oci::HugepageLimit>& limits, Writes& out);
Result<> write_network(const oci::Resources& resources, Writes& out);
Result<> write_rdma(const oci::Resources& resources, Writes& out);
Result<> write_unified(const oci::Resources& resources, Writes& out);

}  // namespace wherry::cgroups
