#include "base/json.h"
#include "base/text.h"
#include "tools/wherry/output.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {

Result<int> leaks(const Global& global, const LeaksOptions& options) {
  const auto format = TRY(format_of(options.output));
  const auto found = TRY(TRY(Pods::open(global.places)).leaks());
  if (format == Format::kJson) {
    TRY(print_json(found));
  } else if (found.empty()) {
    TRY(print_line("leaks: none"));
  } else {
    Table table{{"KIND", "WHAT", "POD", "WHY"}};
    for (const auto& leak : found)
      table.add({json_string_or(leak, "kind", ""), json_string_or(leak, "what", ""),
                 short_id(json_string_or(leak, "pod", "")), json_string_or(leak, "why", "")});
    TRY(print(table.text()));
    TRY(print_line(cat("leaks: ", found.size())));
  }
  return found.empty() ? 0 : options.exit_code;
}

}  // namespace wherry::cli
