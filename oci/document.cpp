#include "oci/document.h"

#include <algorithm>

#include "base/text.h"
#include "oci/config.h"

namespace wherry::oci {

std::string to_string(const Problem& problem) {
  std::string out;
  if (!problem.file.empty()) out += problem.file + ":";
  if (problem.line != 0) out += cat(problem.line, ':', problem.column, ':');
  if (!out.empty()) out += ' ';
  if (!problem.pointer.empty()) out += shown_pointer(problem.pointer) + ": ";
  return out + problem.message;
}

std::vector<std::string> to_lines(std::vector<Finding> findings, std::string_view json,
                                  std::string_view file_name) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.offset < b.offset; });
  constexpr std::size_t kMostShown = 100;
  std::vector<std::string> lines;
  for (auto& finding : findings) {
    if (lines.size() == kMostShown) {
      lines.push_back(cat("and ", findings.size() - kMostShown, " more"));
      break;
    }
    const auto place = place_of(json, finding.offset);
    lines.push_back(to_string(Problem{std::move(finding.pointer), place.line, place.column,
                                      std::move(finding.message), std::string{file_name}}));
  }
  return lines;
}

Error to_error(std::vector<Finding> problems, std::string_view json, std::string_view file_name) {
  return Error::make(Code::kInvalid, join(to_lines(std::move(problems), json, file_name), "\n"));
}

}  // namespace wherry::oci
