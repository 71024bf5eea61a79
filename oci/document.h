// What was found in a document as lines of text. Internal to oci/.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "oci/reader.h"

namespace wherry::oci {

// In the order of the document, a line each: "file:line:column: /json/pointer: what". At most 100,
// then a count.
std::vector<std::string> to_lines(std::vector<Finding> findings, std::string_view json,
                                  std::string_view file_name);
// kInvalid with those lines.
Error to_error(std::vector<Finding> problems, std::string_view json, std::string_view file_name);

}  // namespace wherry::oci
