// One pass over words by CLI11, with what it finds wrong in the words of this program.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace wherry::cli {

using Words = std::vector<std::string>;

// How many of `words` are flags and their values; what follows are operands. "--" is neither.
struct Split {
  std::size_t flags = 0, operands = 0;  // where each part ends and begins
};
Split split_at_operand(const CLI::App& app, const Words& words);

// nullopt: parsed; else the help that was asked for. `verb` is in front of each refusal ("stop"; ""
// for the program's own flags), `usage` is its hint. CLI11 throws; here it ends.
Result<std::optional<std::string>> parse(CLI::App& app, Words words, const std::string& verb,
                                         const std::string& usage);

}  // namespace wherry::cli
