// The flags of `wherry run` -> a pod of one container.
#pragma once
#include "base/result.h"
#include "runtime/pod/pod.h"
#include "tools/wherry/options.h"

namespace wherry::cli {

inline constexpr char kOnlyContainer[] = "main";  // the name of the one container

// kInvalid and kUnsupported name the flag. The host is asked only for the working directory, the
// environment and whether the source of a volume is there.
Result<pod::Pod> pod_of_flags(const RunOptions& options);

// -e: "NAME=VALUE" as it is, "NAME" with our own value; one that we do not have is left out.
Result<std::vector<std::pair<std::string, std::string>>> environment_of(
    const std::vector<std::string>& words);

// "64m" -> 67108864: a number, with a fraction or without, and one of b, k, m, g, t (powers of
// 1024; "kb" and "KiB" mean the same).
Result<std::uint64_t> parse_size(std::string_view text);

// IMAGE or POD and then a command, which may stand behind a "--" of its own: the command.
std::vector<std::string> command_after_first(const std::vector<std::string>& operands);

// Of a text that is a KEY or KEY=VALUE.
std::pair<std::string, std::string> key_and_value(std::string_view text);

}  // namespace wherry::cli
