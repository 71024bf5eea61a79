// run, pod run.
#include "base/text.h"
#include "tools/wherry/manifest_file.h"
#include "tools/wherry/output.h"
#include "tools/wherry/run_flags.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

constexpr Millis kStartWait{300'000};

void tell(const PodStatus& status) {
  for (const auto& warning : status.warnings) print_warning(warning);
}

}  // namespace

Result<int> run(const Global& global, const RunOptions& options) {
  auto pod = TRY(pod_of_flags(options));
  auto pods = TRY(Pods::open(global.places));
  if (!options.detach) return pods.run_attached(std::move(pod), {0, 1, 2});
  const auto status = TRY(pods.run(std::move(pod), Deadline::in(kStartWait)));
  tell(status);
  TRY(print_line(status.id));
  return 0;
}

Result<int> pod_run(const Global& global, const ManifestOptions& options) {
  if (options.timeout <= 0)
    return Error::make(Code::kInvalid, cat("--timeout: ", options.timeout, " is not positive"));
  auto manifest = TRY(parse_manifest(TRY(read_manifest(options.file))));
  for (const auto& warning : manifest.warnings) print_warning(warning);
  auto& ns = manifest.pod.ns;
  if (!options.ns.empty() && ns != options.ns) {
    if (ns != "default")
      return Error::make(Code::kInvalid, cat("-n: ", in_quotes(options.ns),
                                             " is not the namespace '", ns, "' of the manifest"));
    ns = options.ns;
  }
  auto pods = TRY(Pods::open(global.places));
  const auto status =
      TRY(pods.run(std::move(manifest.pod), Deadline::in(std::chrono::seconds{options.timeout})));
  tell(status);
  TRY(print_line(status.id));
  return 0;
}

}  // namespace wherry::cli
