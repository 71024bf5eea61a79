// The verbs. Each returns the exit status of the program.
#pragma once
#include "base/result.h"
#include "tools/wherry/options.h"

namespace wherry::cli {

Result<int> run(const Global& global, const RunOptions& options);
Result<int> pod_run(const Global& global, const ManifestOptions& options);
Result<int> pod_check(const Global& global, const ManifestOptions& options);

Result<int> list_pods(const Global& global, const ListOptions& options);
Result<int> inspect(const Global& global, const InspectOptions& options);

Result<int> logs(const Global& global, const LogsOptions& options);
Result<int> events(const Global& global, const EventsOptions& options);

Result<int> exec(const Global& global, const ExecOptions& options);
Result<int> attach(const Global& global, const TargetOptions& options);
Result<int> wait(const Global& global, const WaitOptions& options);
Result<int> stop(const Global& global, const StopOptions& options);
Result<int> remove(const Global& global, const RemoveOptions& options);
Result<int> kill(const Global& global, const KillOptions& options);

Result<int> image_import(const Global& global, const ImageImportOptions& options);
Result<int> image_list(const Global& global, const OutputOptions& options);
Result<int> image_remove(const Global& global, const ImageRemoveOptions& options);

Result<int> shim_list(const Global& global, const OutputOptions& options);
Result<int> shim_inspect(const Global& global, const TargetOptions& options);
Result<int> shim_call(const Global& global, const ShimCallOptions& options);
Result<int> leaks(const Global& global, const LeaksOptions& options);

Result<int> version(const OutputOptions& options);
Result<int> info(const Global& global, const OutputOptions& options);

}  // namespace wherry::cli
