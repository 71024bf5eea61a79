// The verbs that wherry-ext carries out, since they need libraries which are dear to load.
#include <unistd.h>

#include "shim/pods/programs.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

Result<int> hand_over(const Global& global) {
  const auto program = TRY(shim::open_program("wherry-ext"));
  ::fexecve(program.get(), global.arguments, environ);
  return Error::sys("fexecve", "wherry-ext");
}

}  // namespace

Result<int> image_import(const Global& global, const ImageImportOptions&) {
  return hand_over(global);
}

Result<int> leaks(const Global& global, const LeaksOptions&) {
  return hand_over(global);
}

}  // namespace wherry::cli
