#include "runtime/container/record.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace wherry::container {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kLargestRecord = 1U << 20;

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Result<> check_id(const std::string& id) {
  constexpr std::size_t kLongest = 255;
  const auto wrong = [&](std::string_view why) {
    return Error::make(Code::kInvalid, cat("id ", in_quotes(id.substr(0, 80)), ": ", why));
  };
  if (id.empty()) return wrong("it is empty");
  if (id.size() > kLongest) return wrong("it is longer than 255 bytes");
  if (!is_alnum(id.front()) && id.front() != '_')
    return wrong("it must start with a letter, a digit or '_'");
  if (!std::all_of(id.begin(), id.end(), [](char c) {
        return is_alnum(c) || std::string_view{"_.+-"}.find(c) != std::string_view::npos;
      }))
    return wrong("only letters, digits and '_.+-' may be in it");
  return {};
}

Result<> save_record(int record_dir, const Record& record) {
  Json directories = Json::object();
  for (const auto& [controller, inode] : record.directories) directories[controller] = inode;
  Json json{{"v", kVersion},
            {"id", record.id},
            {"bundle", record.bundle},
            {"pid", record.init.pid},
            {"start_ticks", record.init.start_ticks},
            {"boot_id", record.init.boot_id},
            {"cgroup", record.cgroup},
            {"cgroup_directories", directories},
            {"created", record.created},
            {"oci_version", record.oci_version},
            {"terminal", record.terminal},
            {"annotations", record.annotations}};
  return replace_file(record_dir, kRecordFile, dump_json(json) + "\n", 0600);
}

Result<Record> load_record(int record_dir) {
  const auto text = TRY(read_file_at(record_dir, kRecordFile, kLargestRecord));
  const auto json = TRY(parse_json(text, kRecordFile));
  if (json_int_or(json, "v", 0) != kVersion)
    return Error::make(Code::kInvalid, cat(kRecordFile, ": version ", json_int_or(json, "v", 0),
                                           " is not ", kVersion));
  Record record;
  record.id = TRY(json_string(json, "id"));
  record.bundle = TRY(json_string(json, "bundle"));
  record.init.pid = static_cast<pid_t>(TRY(json_int(json, "pid")));
  record.init.start_ticks = static_cast<std::uint64_t>(TRY(json_int(json, "start_ticks")));
  record.init.boot_id = TRY(json_string(json, "boot_id"));
  record.cgroup = TRY(json_string(json, "cgroup"));
  if (const auto found = json.find("cgroup_directories"); found != json.end() && found->is_object())
    for (const auto& [controller, inode] : found->items())
      if (inode.is_number_unsigned())
        record.directories.push_back({controller, inode.get<std::uint64_t>()});
  record.created = TRY(json_string(json, "created"));
  record.oci_version = TRY(json_string(json, "oci_version"));
  record.terminal = json_bool_or(json, "terminal", false);
  if (const auto found = json.find("annotations"); found != json.end() && found->is_object())
    for (const auto& [key, value] : found->items())
      if (value.is_string()) record.annotations[key] = value.get<std::string>();
  return record;
}

Result<std::optional<cgroups::Place>> own_place(const Record& record,
                                                const cgroups::Hierarchies& hierarchies) {
  auto place = cgroups::Place::open(hierarchies, record.cgroup, record.directories);
  if (place.ok()) return std::optional{std::move(place).value()};
  if (place.error().code() == Code::kNotFound) return std::optional<cgroups::Place>{};
  return std::move(place).error();
}

Result<std::optional<cgroups::Place>> own_place(const Record& record) {
  return own_place(record, TRY(cgroups::discover()));
}

}  // namespace wherry::container
