// wherry-oci: an OCI runtime with runc's command line.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <map>

#include "base/log.h"
#include "base/sealed.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/timing.h"
#include "tools/wherry-oci/verbs.h"
#include "tools/wherry-oci/view.h"

namespace wherry::tool {
namespace {

using Verb = Result<int> (*)(const Options&);

Verb verb_of(const std::string& name) {
  static const std::map<std::string, Verb> kVerbs = {{"create", create_or_run},
                                                     {"run", create_or_run},
                                                     {"start", start},
                                                     {"state", state},
                                                     {"kill", kill},
                                                     {"delete", remove},
                                                     {"list", list},
                                                     {"exec", exec},
                                                     {"ps", ps},
                                                     {"pause", pause},
                                                     {"resume", resume},
                                                     {"update", update},
                                                     {"events", events},
                                                     {"spec", spec},
                                                     {"features", features}};
  return kVerbs.at(name);
}

// Whatever forks into a container must not be the file on disk (CVE-2019-5736).
bool enters_containers(const std::string& verb) {
  return verb == "create" || verb == "run" || verb == "exec";
}

Result<> open_log(const Global& global) {
  LogSink sink;
  sink.least = global.debug ? LogLevel::kDebug : LogLevel::kWarning;
  sink.format = global.log_format;
  if (!global.log_file.empty())
    sink.fd = TRY_CTX(sys::openat(AT_FDCWD, global.log_file,
                                  O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0600),
                      "--log")
                  .release();
  set_log_sink(sink);
  return {};
}

int report(const Error& error, const Global& global, int status) {
  const auto hint = error.hint().empty() ? "" : cat(" (", error.hint(), ")");
  std::fputs(cat("wherry-oci: ", error.message(), hint, "\n").c_str(), stderr);
  if (!global.log_file.empty()) LOG(kError, error.message(), hint);
  return status;
}

int run(int argc, char** argv) {
  auto options = parse_options(argc, argv);
  if (!options.ok()) return report(options.error(), {}, 1);
  if (options->help || options->version) {
    std::fputs((options->version ? cat("wherry-oci version ", WHERRY_VERSION, "\nspec: 1.3.0\n")
                                 : usage(options->verb))
                   .c_str(),
               stdout);
    return 0;
  }
  if (auto opened = open_log(options->global); !opened.ok()) return report(opened.error(), {}, 1);
  // runc's: 1 for a failure of its own, 255 for exec, where 1 could be the command's.
  const int failure = options->verb == "exec" ? 255 : 1;
  if (enters_containers(options->verb))
    if (auto sealed = reexec_sealed(argv, environ); !sealed.ok())  // where view.c could not
      return report(sealed.error(), options->global, failure);
  if (options->timing) begin_timing("start of the program");
  auto status = verb_of(options->verb)(*options);
  if (options->timing) {
    mark_phase("rest");
    std::fputs(table_of(phases()).c_str(), stderr);
  }
  if (!status.ok()) return report(status.error(), options->global, failure);
  return status.value();
}

// Descriptors 0 to 2 are there, so that nothing of ours gets one of those numbers.
void ensure_stdio() {
  struct stat st {};
  for (int fd = 0; fd < 3; ++fd)
    if (::fstat(fd, &st) < 0 && errno == EBADF && ::open("/dev/null", O_RDWR) != fd) ::_exit(1);
}

}  // namespace
}  // namespace wherry::tool

int main(int argc, char** argv) {
  if (::getauxval(AT_SECURE) != 0) {
    std::fputs("wherry-oci: it must not be setuid or have file capabilities\n", stderr);
    return 1;
  }
#ifndef __x86_64__  // there it was done before main()
  wherry_execute_view(argv, environ);
#endif
  wherry::tool::ensure_stdio();
  // It lives for milliseconds: memory is asked for in few steps and goes back with the process.
  ::mallopt(M_TOP_PAD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::umask(0077);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return wherry::tool::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wherry-oci: %s\n", error.what());
    return 1;
  }
}
