// A seccomp profile in a file of its own: what `linux.seccomp` of a config.json is
// (config-linux.md, "Seccomp").
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "oci/spec.h"

namespace wherry::oci {

// As strict as parse_config(), and more: a member that is not known is a problem, because it may be
// meant to narrow a rule, as docker's `includes` and `excludes` do.
Result<Seccomp> parse_seccomp(std::string_view json, std::string_view file_name);
Result<Seccomp> load_seccomp(const std::string& path);  // of at most 1 MiB

}  // namespace wherry::oci
