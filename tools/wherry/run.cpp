// run, pod run, pod check.
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"
#include "runtime/pod/manifest.h"
#include "tools/wherry/output.h"
#include "tools/wherry/run_flags.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

constexpr Millis kStartWait{300'000};
constexpr std::size_t kLongestManifest = 1024 * 1024;

void tell(const PodStatus& status) {
  for (const auto& warning : status.warnings) print_warning(warning);
}

pod::NodeFacts node_facts() {
  pod::NodeFacts facts;
  if (const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN); cpus > 0)
    facts.cpu_milli = static_cast<std::uint64_t>(cpus) * 1000;
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0)
    facts.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  return facts;
}

Result<pod::Manifest> read_manifest(const std::string& file) {
  const bool is_stdin = file == "-";
  UniqueFd opened;
  if (!is_stdin) opened = TRY(sys::openat(AT_FDCWD, file, O_RDONLY | O_NOCTTY));
  const std::string name = is_stdin ? "stdin" : file;
  const auto text = TRY(sys::read_to_end(is_stdin ? 0 : opened.get(), kLongestManifest, name));
  return pod::parse_manifest(text, name, node_facts());
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
  auto manifest = TRY(read_manifest(options.file));
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

Result<int> pod_check(const Global&, const ManifestOptions& options) {
  const auto manifest = read_manifest(options.file);
  if (!manifest.ok()) {
    print_error(manifest.error());
    return 1;
  }
  std::string out;
  for (const auto& warning : manifest.value().warnings) out += cat(harmless(warning), "\n");
  TRY(print(out + "ok\n"));
  return 0;
}

}  // namespace wherry::cli
