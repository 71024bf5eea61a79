// argv -> a verb with its options. CLI11 stands behind this header and parser.h only.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "tools/wherry/options.h"

namespace wherry::cli {

struct CommandLine {
  Global global;
  bool needs_root = false;                         // `verb` is for root only
  std::string text;                                // help or version: printed instead of a verb
  std::function<Result<int>(const Global&)> verb;  // empty when there is `text`
};

// kInvalid for a word that is not understood; the hint names the help to read.
Result<CommandLine> parse_command_line(int argc, char** argv);

}  // namespace wherry::cli
