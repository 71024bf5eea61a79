// The command line of wherry-oci: runc's verbs and flags, read by getopt_long(3) because this
// program must start fast.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"

namespace wherry::tool {

struct Global {
  std::string root = "/run/wherry-oci";
  std::string log_file;
  LogFormat log_format = LogFormat::kText;
  bool debug = false;
};

struct Options {
  Global global;
  std::string verb;
  std::vector<std::string> operands;  // what is left after the flags
  // create and run
  std::string bundle = ".", console_socket, pid_file;
  unsigned preserve_fds = 0;
  bool timing = false;  // start as well
  bool no_new_keyring = false, detach = false, keep = false, no_subreaper = false;
  // kill, delete
  bool all = false, force = false;
  // list
  std::string format = "table";
  bool quiet = false;
  // ps (what comes after the id), events, update (flag -> value), spec
  std::vector<std::string> ps_options;
  std::string interval = "5s", resources_file;
  bool stats = false;
  std::map<std::string, std::string> limits;
  // exec
  std::string process_file, cwd, user;
  std::vector<std::string> env, capabilities;
  std::vector<std::uint32_t> additional_gids;
  std::optional<bool> no_new_privileges;
  bool tty = false, ignore_paused = false;
  bool help = false, version = false;
};

// kInvalid names the flag. `help` and `version` are set and nothing else is checked then.
Result<Options> parse_options(int argc, char** argv);
std::string usage(const std::string& verb);     // all of it; "" for the program
std::string see_help(const std::string& verb);  // its first line and where the rest is: a hint

}  // namespace wherry::tool
