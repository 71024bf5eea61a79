#include "tools/wherry-oci/options.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/text.h"

namespace wherry::tool {
namespace {

using Taker = std::function<Result<>(Options&, const std::string&)>;

struct Flag {
  const char* name;
  char letter;  // 0: none
  bool has_value;
  const char* help;
  Taker take;
};

template <class Member>
Taker text(Member member) {
  return [member](Options& options, const std::string& value) -> Result<> {
    options.*member = value;
    return {};
  };
}
Taker on(bool Options::*member) {
  return [member](Options& options, const std::string&) -> Result<> {
    options.*member = true;
    return {};
  };
}
template <class T>
Taker number(T Options::*member, const char* name) {
  return [member, name](Options& options, const std::string& value) -> Result<> {
    const auto parsed = parse_int<T>(value);
    if (!parsed)
      return Error::make(Code::kInvalid,
                         cat("--", name, ": ", in_quotes(value), " is not a number"));
    options.*member = *parsed;
    return {};
  };
}
Taker refuse(const char* why) {
  return [why](Options&, const std::string&) -> Result<> {
    return Error::make(Code::kUnsupported, why);
  };
}
Result<> add_gid(Options& options, const std::string& value) {
  for (const auto part : split(value, ',')) {
    const auto gid = parse_int<std::uint32_t>(part);
    if (!gid)
      return Error::make(Code::kInvalid,
                         cat("--additional-gids: ", in_quotes(part), " is not a group number"));
    options.additional_gids.push_back(*gid);
  }
  return {};
}

const Flag& timing_flag() {
  static const Flag flag{"timing", 0, false, "say on stderr what the time went into",
                         on(&Options::timing)};
  return flag;
}

const std::vector<Flag>& create_flags() {
  static const std::vector<Flag> flags = {
      {"bundle", 'b', true, "directory with config.json (default: the current one)",
       text(&Options::bundle)},
      {"console-socket", 0, true, "Unix socket that receives the terminal's master",
       text(&Options::console_socket)},
      {"pid-file", 0, true, "file that gets the number of init", text(&Options::pid_file)},
      {"preserve-fds", 0, true, "pass descriptors 3 .. 2+N on",
       number(&Options::preserve_fds, "preserve-fds")},
      {"no-new-keyring", 0, false, "keep the caller's session keyring",
       on(&Options::no_new_keyring)},
      {"no-pivot", 0, false, "refused",
       refuse("--no-pivot: a root without pivot_root can be left; it is not offered")},
      timing_flag(),
  };
  return flags;
}

std::vector<Flag> run_flags() {
  auto flags = create_flags();
  flags.push_back({"detach", 'd', false, "return when the container runs", on(&Options::detach)});
  flags.push_back(
      {"keep", 0, false, "do not delete the container when it ends", on(&Options::keep)});
  flags.push_back({"no-subreaper", 0, false, "do not adopt orphans of the container",
                   on(&Options::no_subreaper)});
  return flags;
}

std::vector<Flag> exec_flags() {
  return {
      {"console-socket", 0, true, "Unix socket that receives the terminal's master",
       text(&Options::console_socket)},
      {"cwd", 0, true, "working directory", text(&Options::cwd)},
      {"env", 'e', true, "NAME=VALUE, may be repeated",
       [](Options& o, const std::string& v) -> Result<> {
         o.env.push_back(v);
         return {};
       }},
      {"tty", 't', false, "give it a terminal", on(&Options::tty)},
      {"user", 'u', true, "UID[:GID]", text(&Options::user)},
      {"additional-gids", 'g', true, "more groups, comma separated", add_gid},
      {"process", 'p', true, "process.json in place of a command", text(&Options::process_file)},
      {"detach", 'd', false, "return when the process runs", on(&Options::detach)},
      {"pid-file", 0, true, "file that gets the number of the process", text(&Options::pid_file)},
      {"cap", 'c', true, "one more capability, may be repeated",
       [](Options& o, const std::string& v) -> Result<> {
         o.capabilities.push_back(v);
         return {};
       }},
      {"no-new-privs", 0, false, "set no-new-privileges",
       [](Options& o, const std::string&) -> Result<> {
         o.no_new_privileges = true;
         return {};
       }},
      {"preserve-fds", 0, true, "pass descriptors 3 .. 2+N on",
       number(&Options::preserve_fds, "preserve-fds")},
      {"ignore-paused", 0, false, "thaw nothing, but do not refuse a paused container",
       refuse("--ignore-paused: a process cannot be started in a frozen cgroup")},
  };
}

std::vector<Flag> update_flags() {
  struct Limit {
    const char* name;
    const char* help;
  };
  static constexpr std::array kLimits = {
      Limit{"blkio-weight", "weight of block I/O, 10 to 1000"},
      Limit{"cpu-period", "length of a CPU period in microseconds"},
      Limit{"cpu-quota", "CPU time in a period in microseconds"},
      Limit{"cpu-burst", "CPU time that may be saved up in microseconds"},
      Limit{"cpu-share", "CPU shares beside others, 2 to 262144"},
      Limit{"cpu-rt-period", "length of a realtime period in microseconds"},
      Limit{"cpu-rt-runtime", "realtime in a period in microseconds"},
      Limit{"cpu-idle", "1: runs only when nothing else does"},
      Limit{"cpuset-cpus", "CPUs, such as 0-3,7"},
      Limit{"cpuset-mems", "memory nodes"},
      Limit{"memory", "memory in bytes, or with k, m, g"},
      Limit{"memory-reservation", "memory that is kept under pressure"},
      Limit{"memory-swap", "memory and swap together; -1: no limit"},
      Limit{"kernel-memory-tcp", "memory of TCP buffers (v1)"},
      Limit{"pids-limit", "processes and threads; -1: no limit"},
  };
  std::vector<Flag> flags = {{"resources", 'r', true,
                              "file with linux.resources as JSON, or - for standard input",
                              text(&Options::resources_file)}};
  for (const auto& limit : kLimits)
    flags.push_back({limit.name, 0, true, limit.help,
                     [name = limit.name](Options& o, const std::string& v) -> Result<> {
                       o.limits[name] = v;
                       return {};
                     }});
  flags.push_back({"kernel-memory", 0, true, "refused",
                   refuse("--kernel-memory: Linux has no such limit since 6.1")});
  flags.push_back({"l3-cache-schema", 0, true, "refused",
                   refuse("--l3-cache-schema: Intel RDT is not managed")});
  flags.push_back(
      {"mem-bw-schema", 0, true, "refused", refuse("--mem-bw-schema: Intel RDT is not managed")});
  return flags;
}

const std::map<std::string, std::pair<std::string, std::vector<Flag>>>& verbs() {
  static const std::map<std::string, std::pair<std::string, std::vector<Flag>>> table = {
      {"create", {"create [flags] ID", create_flags()}},
      {"run", {"run [flags] ID", run_flags()}},
      {"start", {"start [flags] ID", {timing_flag()}}},
      {"state", {"state ID", {}}},
      {"kill",
       {"kill [--all] ID [SIGNAL]",
        {{"all", 'a', false, "to all its processes", on(&Options::all)}}}},
      {"delete",
       {"delete [--force] ID", {{"force", 'f', false, "kill it first", on(&Options::force)}}}},
      {"list",
       {"list [--format table|json] [--quiet]",
        {{"format", 'f', true, "table or json", text(&Options::format)},
         {"quiet", 'q', false, "ids only", on(&Options::quiet)}}}},
      {"exec", {"exec [flags] ID COMMAND [ARG...]", exec_flags()}},
      {"ps",
       {"ps [--format table|json] ID [PS-OPTION...]",
        {{"format", 'f', true, "table or json", text(&Options::format)}}}},
      {"pause", {"pause ID", {}}},
      {"resume", {"resume ID", {}}},
      {"update", {"update [flags] ID", update_flags()}},
      {"events",
       {"events [--interval TIME] [--stats] ID",
        {{"interval", 0, true, "between statistics (5s)", text(&Options::interval)},
         {"stats", 0, false, "print statistics once", on(&Options::stats)}}}},
      {"spec",
       {"spec [--bundle DIR]",
        {{"bundle", 'b', true, "directory that gets config.json", text(&Options::bundle)},
         {"rootless", 0, false, "refused",
          refuse("--rootless: this runtime needs the privileges of root")}}}},
      {"features", {"features", {}}},
  };
  return table;
}

std::vector<Flag> global_flags() {
  return {
      {"root", 0, true, "state directory (/run/wherry-oci)",
       [](Options& o, const std::string& v) -> Result<> {
         o.global.root = v;
         return {};
       }},
      {"log", 0, true, "file for messages",
       [](Options& o, const std::string& v) -> Result<> {
         o.global.log_file = v;
         return {};
       }},
      {"log-format", 0, true, "text or json",
       [](Options& o, const std::string& v) -> Result<> {
         if (v != "text" && v != "json")
           return Error::make(Code::kInvalid,
                              cat("--log-format: ", in_quotes(v), " is neither text nor json"));
         o.global.log_format = v == "json" ? LogFormat::kJson : LogFormat::kText;
         return {};
       }},
      {"debug", 0, false, "log more",
       [](Options& o, const std::string&) -> Result<> {
         o.global.debug = true;
         return {};
       }},
      {"systemd-cgroup", 0, false, "refused",
       refuse("--systemd-cgroup: this runtime manages cgroups itself")},
      {"version", 'v', false, "print the version", on(&Options::version)},
      {"help", 'h', false, "print this", on(&Options::help)},
  };
}

// One pass of getopt_long over argv from `optind`; stops at the first operand.
Result<> take_flags(int argc, char** argv, std::vector<Flag> flags, Options& options,
                    const std::string& verb) {
  if (!verb.empty()) flags.push_back({"help", 'h', false, "print this", on(&Options::help)});
  std::vector<option> longs;
  std::string shorts = "+:";  // stop at an operand; tell a missing value apart
  for (std::size_t i = 0; i < flags.size(); ++i) {
    longs.push_back({flags[i].name, flags[i].has_value ? required_argument : no_argument, nullptr,
                     static_cast<int>(256 + i)});
    if (flags[i].letter != 0)
      shorts += flags[i].has_value ? cat(flags[i].letter, ':') : std::string(1, flags[i].letter);
  }
  longs.push_back({nullptr, 0, nullptr, 0});
  opterr = 0;
  int code = 0;
  while ((code = ::getopt_long(argc, argv, shorts.c_str(), longs.data(), nullptr)) != -1) {
    if (code == '?' || code == ':')
      return Error::make(Code::kInvalid,
                         cat(code == '?' ? "unknown flag " : "a value is missing for ",
                             in_quotes(argv[optind - 1])))
          .hint(see_help(verb));
    const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) {
      return code >= 256 ? &flag - flags.data() == code - 256 : flag.letter == code;
    });
    TRY(found->take(options, optarg == nullptr ? "" : optarg));
  }
  return {};
}

std::string describe(const std::vector<Flag>& flags) {
  std::string out;
  for (const auto& flag : flags) {
    std::string left =
        flag.letter != 0 ? cat("  -", flag.letter, ", --", flag.name) : cat("      --", flag.name);
    if (flag.has_value) left += " VALUE";
    left.resize(std::max<std::size_t>(left.size() + 2, 32), ' ');
    out += cat(left, flag.help, "\n");
  }
  return out;
}

}  // namespace

std::string see_help(const std::string& verb) {
  const auto found = verbs().find(verb);
  return found == verbs().end()
             ? "see wherry-oci --help"
             : cat("usage: wherry-oci ", found->second.first, "; see wherry-oci ", verb, " --help");
}

std::string usage(const std::string& verb) {
  if (const auto found = verbs().find(verb); found != verbs().end())
    return cat("usage: wherry-oci ", found->second.first, "\n", describe(found->second.second));
  std::string out =
      "usage: wherry-oci [global flags] VERB ...\n\nAn OCI runtime with runc's command "
      "line.\n\nverbs:\n";
  for (const auto& [name, entry] : verbs()) out += cat("  ", entry.first, "\n");
  return cat(out, "\nglobal flags:\n", describe(global_flags()),
             "\nexample: wherry-oci run --bundle /srv/web web1\n");
}

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  optind = 1;
  TRY(take_flags(argc, argv, global_flags(), options, ""));
  if (options.help || options.version) return options;
  if (optind >= argc) return Error::make(Code::kInvalid, "a verb is missing").hint(see_help({}));
  options.verb = argv[optind++];
  const auto found = verbs().find(options.verb);
  if (found == verbs().end())
    return Error::make(Code::kInvalid, cat("there is no verb ", in_quotes(options.verb)))
        .hint(see_help({}));
  TRY(take_flags(argc, argv, found->second.second, options, options.verb));
  // runc takes flags after the id as well, but for exec, whose command may have flags of its own.
  while (optind < argc) {
    if (options.verb == "ps" && options.operands.size() == 1) {
      options.ps_options.assign(argv + optind, argv + argc);
      break;
    }
    options.operands.emplace_back(argv[optind++]);
    if (options.verb == "ps") continue;
    if (options.verb != "exec")
      TRY(take_flags(argc, argv, found->second.second, options, options.verb));
    else if (options.operands.size() == 1)
      TRY(take_flags(argc, argv, found->second.second, options, options.verb));
  }
  return options;
}

}  // namespace wherry::tool
