// update.
#include <fcntl.h>
#include <unistd.h>

#include <limits>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/config.h"
#include "runtime/container/container.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

constexpr std::size_t kLargestResources = 1U << 20;

// The reader of whole documents says what is wrong with it and where, so it is put into one.
Result<oci::Resources> parse_resources(const std::string& text, const std::string& name) {
  auto document = TRY(oci::parse_config(
      cat(R"({"ociVersion":"1.0.2","root":{"path":"/"},"linux":{"resources":)", text, "}}"), name));
  if (!document.spec.linux_ || !document.spec.linux_->resources) return oci::Resources{};
  return std::move(*document.spec.linux_->resources);
}

Result<oci::Resources> read_resources(const std::string& file) {
  if (file.empty()) return oci::Resources{};
  const auto text = TRY_CTX(file == "-" ? sys::read_to_end(0, kLargestResources, "standard input")
                                        : read_file_at(AT_FDCWD, file, kLargestResources),
                            "--resources");
  return parse_resources(text, file == "-" ? "standard input" : file);
}

Error bad_value(const std::string& flag, const std::string& value, std::string_view wanted) {
  return Error::make(Code::kInvalid, cat("--", flag, ": ", in_quotes(value), " is not ", wanted));
}

// "100", "64k", "1g": powers of 1024, as runc takes them; -1 is no limit.
Result<std::int64_t> bytes(const std::string& flag, const std::string& value) {
  std::string_view digits = value;
  int shift = 0;
  if (digits.ends_with('b') || digits.ends_with('B')) digits.remove_suffix(1);
  constexpr std::string_view kUnits = "kmgtp";
  if (!digits.empty()) {
    const char last = digits.back() >= 'A' && digits.back() <= 'Z'
                          ? static_cast<char>(digits.back() + 32)
                          : digits.back();
    if (const auto unit = kUnits.find(last); unit != std::string_view::npos) {
      shift = static_cast<int>(unit + 1) * 10;
      digits.remove_suffix(1);
    }
  }
  const auto number = parse_int<std::int64_t>(digits);
  if (!number || *number < -1 || (*number == -1 && shift != 0) ||
      *number > (std::numeric_limits<std::int64_t>::max() >> shift))
    return bad_value(flag, value, "a number of bytes");
  return *number == -1 ? -1 : *number << shift;
}

template <class T, class Field>
Result<> set_number(const std::string& flag, const std::string& value, Field& field) {
  const auto number = parse_int<T>(value);
  if (!number) return bad_value(flag, value, "a number in range");
  field = *number;
  return {};
}

Result<> set_memory(const std::string& flag, const std::string& value, oci::Resources& all) {
  auto& memory = all.memory ? *all.memory : all.memory.emplace();
  const auto number = TRY(bytes(flag, value));
  if (flag == "memory")
    memory.limit = number;
  else if (flag == "memory-reservation")
    memory.reservation = number;
  else if (flag == "memory-swap")
    memory.swap = number;
  else
    memory.kernel_tcp = number;
  return {};
}

Result<> set_cpu(const std::string& flag, const std::string& value, oci::Resources& all) {
  auto& cpu = all.cpu ? *all.cpu : all.cpu.emplace();
  if (flag == "cpu-period") return set_number<std::uint64_t>(flag, value, cpu.period);
  if (flag == "cpu-quota") return set_number<std::int64_t>(flag, value, cpu.quota);
  if (flag == "cpu-burst") return set_number<std::uint64_t>(flag, value, cpu.burst);
  if (flag == "cpu-share") return set_number<std::uint64_t>(flag, value, cpu.shares);
  if (flag == "cpu-rt-period") return set_number<std::uint64_t>(flag, value, cpu.realtime_period);
  if (flag == "cpu-rt-runtime") return set_number<std::int64_t>(flag, value, cpu.realtime_runtime);
  if (flag == "cpu-idle") return set_number<std::int64_t>(flag, value, cpu.idle);
  (flag == "cpuset-cpus" ? cpu.cpus : cpu.mems) = value;
  return {};
}

Result<> set_limit(const std::string& flag, const std::string& value, oci::Resources& all) {
  if (flag == "pids-limit") return set_number<std::int64_t>(flag, value, all.pids_limit);
  if (flag == "blkio-weight")
    return set_number<std::uint16_t>(
        flag, value, (all.block_io ? *all.block_io : all.block_io.emplace()).weight);
  if (flag.starts_with("cpu")) return set_cpu(flag, value, all);
  return set_memory(flag, value, all);
}

}  // namespace

Result<int> update(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  auto resources = TRY(read_resources(options.resources_file));
  for (const auto& [flag, value] : options.limits) TRY(set_limit(flag, value, resources));
  const auto dir = TRY(open_container(options, id, Locking::kYes));
  TRY_CTX(container::update(dir.container.get(), std::move(resources)),
          cat("update container '", id, "'"));
  return 0;
}

}  // namespace wherry::tool
