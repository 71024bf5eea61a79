// ps, pause, resume.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "runtime/container/container.h"
#include "tools/wherry-oci/verbs.h"

namespace wherry::tool {
namespace {

Result<std::string> path_of_ps() {
  for (const auto* path : {"/usr/bin/ps", "/bin/ps"})
    if (::access(path, X_OK) == 0) return std::string{path};
  return Error::make(Code::kUnsupported, "this host has no program 'ps'")
      .hint("--format json needs none");
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (const auto word : split(line, ' '))
    if (!word.empty()) out.push_back(word);
  return out;
}

// The table of the host's ps(1), of which the lines of the container's processes are kept.
Result<> print_table(const Options& options, const std::vector<pid_t>& pids) {
  Command command;
  command.argv = {TRY(path_of_ps())};
  command.env = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
  command.output_limit = 64U << 20;
  if (options.ps_options.empty())
    command.argv.emplace_back("-ef");
  else
    command.argv.insert(command.argv.end(), options.ps_options.begin(), options.ps_options.end());
  const auto result = TRY(run_command(command, Deadline::in(kVerbTime)));
  if (result.exit_status != 0)
    return Error::make(Code::kInvalid,
                       cat("ps ended with status ", result.exit_status, ": ", trim(result.err)));
  const auto lines = split(result.out, '\n');
  const auto titles = words(lines[0]);
  const auto column = std::find(titles.begin(), titles.end(), "PID") - titles.begin();
  if (static_cast<std::size_t>(column) == titles.size())
    return Error::make(Code::kInvalid, "ps prints no column 'PID'")
        .hint("its options have to ask for it: -ef, or -o pid,comm");
  std::printf("%.*s\n", static_cast<int>(lines[0].size()), lines[0].data());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto cells = words(lines[i]);
    if (cells.size() <= static_cast<std::size_t>(column)) continue;
    const auto pid = parse_int<pid_t>(cells[static_cast<std::size_t>(column)]);
    if (pid && std::find(pids.begin(), pids.end(), *pid) != pids.end())
      std::printf("%.*s\n", static_cast<int>(lines[i].size()), lines[i].data());
  }
  return {};
}

}  // namespace

Result<int> ps(const Options& options) {
  if (options.format != "table" && options.format != "json")
    return Error::make(Code::kInvalid,
                       cat("--format: ", in_quotes(options.format), " is neither table nor json"));
  const auto id = TRY(the_id(options, 1));
  const auto dir = TRY(open_container(options, id, Locking::kNo));
  const auto context = cat("processes of container '", id, "'");
  const auto pids = TRY_CTX(container::processes(dir.container.get()), context);
  if (options.format == "json") {
    std::printf("%s\n", dump_json(Json(pids)).c_str());
    return 0;
  }
  TRY_CTX(print_table(options, pids), context);
  return 0;
}

Result<int> pause(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  const auto dir = TRY(open_container(options, id, Locking::kYes));
  TRY_CTX(container::pause(dir.container.get(), Deadline::in(kFreezeTime)),
          cat("pause container '", id, "'"));
  return 0;
}

Result<int> resume(const Options& options) {
  const auto id = TRY(the_id(options, 1));
  const auto dir = TRY(open_container(options, id, Locking::kYes));
  TRY_CTX(container::resume(dir.container.get()), cat("resume container '", id, "'"));
  return 0;
}

}  // namespace wherry::tool
