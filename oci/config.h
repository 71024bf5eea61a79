// Reading and writing config.json.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "oci/spec.h"

namespace wherry::oci {

// One thing that is wrong with a document, and where.
struct Problem {
  std::string pointer;            // JSON pointer: "/mounts/3/options/0"
  unsigned line = 0, column = 0;  // 0 when it is not known (a Spec that was built, not read)
  std::string message;            // what is wrong and what would be right
  std::string file;               // as given to parse_config(); empty for a Spec that was built
};
std::string to_string(
    const Problem& problem);  // "config.json:12:5: /process/cwd: must be an absolute path"

struct Document {
  Spec spec;
  std::vector<std::string>
      notes;  // accepted, but worth a word: unknown members, a newer 1.x version
};

// yajl underneath: depth at most 64, size at most 16 MiB, duplicate keys refused, invalid UTF-8 an
// error with its place, integers range-checked. Also validates: the error tells all problems of the
// document at once, a line each.
Result<Document> parse_config(std::string_view json, std::string_view file_name = "config.json");
// Only `process`, as `exec --process FILE` reads it.
Result<Process> parse_process(std::string_view json, std::string_view file_name = "process.json");

// The value of `hooks` alone, as to_json() writes it.
Result<Hooks> parse_hooks(std::string_view json, std::string_view file_name = "hooks.json");

// The rules that need no kernel: required members, absolute paths, known words, unique namespaces,
// mapping overlaps...
std::vector<Problem> validate(const Spec& spec);

// The file below /proc/sys that a sysctl's key names: "net.ipv4.conf.eth0/1.forwarding" (or with
// '.' and '/' exchanged, as sysctl(8) has it) is "net/ipv4/conf/eth0.1/forwarding". Nothing when it
// is no key, or would leave /proc/sys.
std::optional<std::string> sysctl_path(std::string_view key);
// The namespace that such a file belongs to; nothing when it belongs to the whole host.
std::optional<NamespaceType> sysctl_namespace(std::string_view path);

Json to_json(const Spec& spec);  // what parse_config reads back as the same Spec
Json to_json(const Process& process);
Json to_json(const Hooks& hooks);

}  // namespace wherry::oci
