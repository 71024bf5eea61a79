// wherry: pods, containers and images from the command line.
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/log.h"
#include "base/text.h"
#include "tools/wherry/command_line.h"
#include "tools/wherry/output.h"

namespace wherry::cli {
namespace {

constexpr int kOurs = 125;

Result<> set_log(const Global& global) {
  LogSink sink;
  if (global.log_level == "debug")
    sink.least = LogLevel::kDebug;
  else if (global.log_level == "info")
    sink.least = LogLevel::kInfo;
  else if (global.log_level == "warning")
    sink.least = LogLevel::kWarning;
  else if (global.log_level == "error")
    sink.least = LogLevel::kError;
  else
    return Error::make(Code::kInvalid, cat("--log-level: ", in_quotes(global.log_level),
                                           " is none of debug, info, warning, error"));
  set_log_sink(sink);
  return {};
}

Result<int> start(int argc, char** argv) {
  const auto command = TRY(parse_command_line(argc, argv));
  if (!command.verb) {
    TRY(print(command.text));
    return 0;
  }
  TRY(set_log(command.global));
  if (command.needs_root && ::geteuid() != 0)
    return Error::make(Code::kDenied, "this needs root: namespaces, mounts and cgroups")
        .hint("run it as root, as with sudo");
  return command.verb(command.global);
}

// Descriptors 0 to 2 are there, so that nothing of ours gets one of those numbers.
void ensure_stdio() {
  struct stat st {};
  for (int fd = 0; fd < 3; ++fd)
    if (::fstat(fd, &st) < 0 && ::open("/dev/null", O_RDWR) != fd) ::_exit(kOurs);
}

int guarded(int argc, char** argv) {
  try {
    const auto status = start(argc, argv);
    if (status.ok()) return status.value();
    // `wherry logs | head`: the reader has what it wanted.
    if (status.error().sys_errno() == EPIPE && status.error().object() == "stdout")
      return 128 + SIGPIPE;
    print_error(status.error());
    return exit_code_of_failure(status.error());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wherry: %s\n", error.what());
    return kOurs;
  }
}

}  // namespace
}  // namespace wherry::cli

int main(int argc, char** argv) {
  if (::getauxval(AT_SECURE) != 0) {
    std::fputs("wherry: it must not be setuid or have file capabilities\n", stderr);
    return wherry::cli::kOurs;
  }
  wherry::cli::ensure_stdio();
  ::umask(0077);
  ::signal(SIGPIPE, SIG_IGN);
  return wherry::cli::guarded(argc, argv);
}
