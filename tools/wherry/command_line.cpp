#include "tools/wherry/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "tools/wherry/nearest_verb.h"
#include "tools/wherry/parser.h"
#include "tools/wherry/verbs.h"

namespace wherry::cli {
namespace {

// Operands after which nothing is a flag of ours: `wherry run IMAGE ls -l`.
enum class Operands { kAnywhere, kEndFlags };

// Whether a verb does its work for anybody, or needs to be root.
enum class Needs { kNothing, kRoot };

struct Verb {
  const char* name;
  const char* group;
  const char* operands;  // as the help shows them
  const char* summary;
  const char* examples;
  Operands where;
  // Declares the flags and says what is to be done. The words are the operands of kEndFlags.
  void (*declare)(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>& words);
  Needs needs = Needs::kRoot;
};

class VerbFormatter : public CLI::Formatter {
 public:
  explicit VerbFormatter(std::string usage) : usage_{std::move(usage)} { column_width(34); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return cat("\nUsage: ", usage_, "\n");
  }
  std::string make_positionals(const CLI::App*) const override { return {}; }

 private:
  std::string usage_;
};

// ---- what several verbs have
// ----------------------------------------------------------------------

// One value for each time that the flag is given, not all words that follow.
void add_list(CLI::App& app, const char* names, Words& into, const char* help) {
  app.add_option(names, into, help)->allow_extra_args(false)->type_name("");
}
template <class T>
CLI::Option* add_value(CLI::App& app, const char* names, T& into, const char* help) {
  return app.add_option(names, into, help)->type_name("");
}
void add_namespace(CLI::App& app, std::string& ns) {
  add_value(app, "-n,--namespace", ns, "NS: namespace of the pod (default)");
}
void add_output(CLI::App& app, std::string& output) {
  add_value(app, "-o,--output", output, "FORMAT: table or json");
}
void add_targets(CLI::App& app, TargetOptions& options) {
  add_namespace(app, options.ns);
  app.add_option("POD", options.targets)->required();
}
void add_one_target(CLI::App& app, TargetOptions& options) {
  add_namespace(app, options.ns);
  app.add_option("POD", options.targets)->required()->expected(1);
}

template <class Options>
using VerbFunction = Result<int> (*)(const Global&, const Options&);

template <class Options>
void carry_out(CommandLine& command, const std::shared_ptr<Options>& options,
               VerbFunction<Options> verb) {
  command.verb = [options, verb](const Global& global) { return verb(global, *options); };
}

// ---- the verbs
// ------------------------------------------------------------------------------------

void declare_run_resources(CLI::App& app, RunOptions& o) {
  add_value(app, "--memory", o.memory, "SIZE: memory at most, as 64m or 1g");
  add_value(app, "--cpus", o.cpus, "NUMBER: CPUs' worth of time, as 0.5");
  add_value(app, "--pids-limit", o.pids_limit, "N: processes and threads at most; -1: no limit");
  add_list(app, "--device", o.devices, "/dev/X[:/dev/Y][:rwm]: give it a device of the host");
}

void declare_run_security(CLI::App& app, RunOptions& o) {
  add_list(app, "--cap-add", o.cap_add, "NAME: one capability more, or ALL");
  add_list(app, "--cap-drop", o.cap_drop, "NAME: one capability less, or ALL");
  app.add_flag("--privileged", o.privileged, "all that we ourselves have: the host is open to it");
  add_list(
      app, "--security-opt", o.security,
      "no-new-privileges[=true|false]; seccomp=unconfined, or =FILE: a profile as linux.seccomp "
      "of the OCI runtime-spec");
  add_value(app, "-u,--user", o.user, "USER[:GROUP]: names or numbers");
  app.add_flag("--read-only", o.read_only, "mount the root read-only");
}

void declare_run(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>& words) {
  auto o = std::make_shared<RunOptions>();
  app.add_flag("--rm", o->rm, "remove it when it has ended");
  app.add_flag("-d,--detach", o->detach, "print the id and return when it runs");
  app.add_flag("-i,--interactive", o->interactive, "pass stdin on");
  app.add_flag("-t,--tty", o->tty, "give it a terminal");
  add_value(app, "--name", o->name, "NAME: name of the pod (a part of its id)");
  add_namespace(app, o->ns);
  add_list(app, "-e,--env", o->env, "NAME=VALUE, or NAME: taken from here");
  add_list(app, "-v,--volume", o->volumes, "SRC:DST[:ro|rw|rslave|rshared]: bind a host path");
  declare_run_resources(app, *o);
  declare_run_security(app, *o);
  add_value(app, "-w,--workdir", o->workdir, "DIR: working directory");
  add_value(app, "--network", o->network, "none, host or pod (own, with loopback; default)");
  add_value(app, "--rootfs", o->rootfs, "DIR: use this directory as root in place of an image");
  add_value(app, "--entrypoint", o->entrypoint, "PROGRAM or JSON array, in place of the image's");
  add_value(app, "--hostname", o->hostname, "NAME: (the name of the pod)");
  add_list(app, "-l,--label", o->labels, "KEY=VALUE: label of the pod");
  add_value(app, "--restart", o->restart, "no, on-failure or always (no)");
  add_value(app, "--stop-signal", o->stop_signal, "NAME: what `wherry stop` sends first");
  add_value(app, "--stop-timeout", o->stop_timeout, "SECONDS from the signal to the kill (10)");
  command.verb = [o, words](const Global& global) {
    o->operands = std::move(*words);
    return run(global, *o);
  };
}

void declare_exec(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>& words) {
  auto o = std::make_shared<ExecOptions>();
  app.add_flag("-i,--interactive", o->interactive, "pass stdin on");
  app.add_flag("-t,--tty", o->tty, "give it a terminal");
  add_list(app, "-e,--env", o->env, "NAME=VALUE, or NAME: taken from here");
  add_value(app, "-u,--user", o->user, "USER[:GROUP]: names or numbers");
  add_value(app, "-w,--workdir", o->workdir, "DIR: working directory");
  add_namespace(app, o->ns);
  command.verb = [o, words](const Global& global) {
    o->operands = std::move(*words);
    return exec(global, *o);
  };
}

std::shared_ptr<ManifestOptions> declare_manifest(CLI::App& app) {
  auto o = std::make_shared<ManifestOptions>();
  add_value(app, "-f,--file", o->file, "FILE: Kubernetes v1/Pod in YAML or JSON; - is stdin")
      ->required();
  return o;
}

void declare_pod_run(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = declare_manifest(app);
  add_value(app, "-n,--namespace", o->ns, "NS: where the manifest names none");
  add_value(app, "--timeout", o->timeout, "SECONDS until every container must run (300)");
  carry_out(command, o, pod_run);
}

void declare_pod_check(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = declare_manifest(app);
  add_output(app, o->output);
  carry_out(command, o, pod_check);
}

void declare_ps(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<ListOptions>();
  app.add_flag("-a,--all", o->all, "also those that have ended");
  app.add_flag("-q,--quiet", o->quiet, "ids only");
  add_output(app, o->output);
  add_value(app, "-n,--namespace", o->ns, "NS: only of this namespace (all)");
  add_list(app, "--filter", o->filters,
           "name=TEXT, id=PREFIX, label=KEY[=VALUE], or status= one of pending, running, "
           "succeeded, failed, unknown, exited");
  add_list(app, "-l,--label", o->labels, "KEY[=VALUE]: as --filter label=");
  carry_out(command, o, list_pods);
}

void declare_inspect(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<InspectOptions>();
  app.add_flag("-a,--all", o->all, "with the config.json of each container, as it was created");
  add_value(app, "-o,--output", o->output, "FORMAT: json, the only one");
  add_targets(app, *o);
  carry_out(command, o, inspect);
}

void declare_logs(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<LogsOptions>();
  app.add_flag("-f,--follow", o->follow, "go on until the container has ended");
  app.add_flag("-t,--timestamps", o->timestamps, "with the time of each line");
  add_value(app, "--tail", o->tail, "N: only the last lines");
  add_one_target(app, *o);
  carry_out(command, o, logs);
}

void declare_attach(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<TargetOptions>();
  add_one_target(app, *o);
  carry_out(command, o, attach);
}

void declare_wait(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<WaitOptions>();
  add_value(app, "--timeout", o->timeout,
            "SECONDS to wait at most (for ever); 0: only look. Exit code 125 when it still runs");
  add_targets(app, *o);
  carry_out(command, o, wait);
}

void declare_stop(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<StopOptions>();
  add_value(app, "-t,--time", o->grace, "SECONDS from the signal to the kill (the pod's own)");
  add_targets(app, *o);
  carry_out(command, o, stop);
}

void declare_rm(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<RemoveOptions>();
  app.add_flag("-f,--force", o->force,
               "kill it first; that there is no such pod, or none is named, is no error");
  add_namespace(app, o->ns);
  app.add_option("targets", o->targets);
  carry_out(command, o, remove);
}

void declare_kill(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<KillOptions>();
  add_value(app, "-s,--signal", o->signal, "NAME or number (KILL)");
  add_targets(app, *o);
  carry_out(command, o, kill);
}

void declare_events(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<EventsOptions>();
  app.add_flag("-f,--follow", o->follow, "go on until interrupted");
  add_value(app, "--since", o->since, "N: only events after this sequence number");
  add_value(app, "-n,--namespace", o->ns, "NS: only of pods in this namespace (all)");
  add_value(app, "-o,--output", o->output, "FORMAT: table, or json (one a line)");
  app.add_option("POD", o->pod);
  carry_out(command, o, events);
}

void declare_image_import(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<ImageImportOptions>();
  app.add_option("PATH", o->path)->required();
  app.add_option("NAME", o->name);
  carry_out(command, o, image_import);
}

void declare_image_ls(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<OutputOptions>();
  add_output(app, o->output);
  app.add_flag("-q,--quiet", o->quiet, "digests only");
  carry_out(command, o, image_list);
}

void declare_image_rm(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<ImageRemoveOptions>();
  app.add_option("NAME", o->names)->required();
  carry_out(command, o, image_remove);
}

void declare_shim_ls(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<OutputOptions>();
  add_output(app, o->output);
  app.add_flag("-q,--quiet", o->quiet, "numbers of the workers only");
  carry_out(command, o, shim_list);
}

void declare_shim_inspect(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<TargetOptions>();
  add_one_target(app, *o);
  carry_out(command, o, shim_inspect);
}

void declare_shim_call(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<ShimCallOptions>();
  add_namespace(app, o->ns);
  add_value(app, "--timeout", o->timeout, "SECONDS to wait for the answer (10)");
  app.add_option("POD", o->target)->required();
  app.add_option("METHOD", o->method)->required();
  app.add_option("PARAMS", o->params);
  carry_out(command, o, shim_call);
}

void declare_leaks(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<LeaksOptions>();
  add_output(app, o->output);
  add_value(app, "--exit-code", o->exit_code, "N: exit status when something is found (1)")
      ->check(CLI::Range(0, 255));
  carry_out(command, o, leaks);
}

void declare_version(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<OutputOptions>();
  add_output(app, o->output);
  command.verb = [o](const Global&) { return version(*o); };
}

void declare_info(CLI::App& app, CommandLine& command, const std::shared_ptr<Words>&) {
  auto o = std::make_shared<OutputOptions>();
  add_output(app, o->output);
  carry_out(command, o, info);
}

constexpr Operands kAny = Operands::kAnywhere;
constexpr char kPods[] = "Pods and containers", kImages[] = "Images", kLook[] = "Looking inside";

constexpr Verb kVerbs[] = {
    {"run", kPods, "[FLAGS] IMAGE [COMMAND...]", "run one container in a pod of its own",
     "  wherry run --rm -it localhost/hello:latest sh\n"
     "  wherry run -d --name web --memory 64m -v /srv/www:/www:ro busybox httpd -f -h /www",
     Operands::kEndFlags, declare_run},
    {"pod run", kPods, "-f FILE", "run the pod of a manifest; returns when all of it runs",
     "  wherry pod run -f examples/hello-pod.yaml", kAny, declare_pod_run},
    {"pod check", kPods, "[FLAGS] -f FILE",
     "say what a manifest would come to; run nothing. Exit status: 0 it can be run, 1 the manifest "
     "has problems, 125 it was not checked",
     "  wherry pod check -f web.yaml\n  wherry pod check -f web.yaml -o json | jq .containers",
     kAny, declare_pod_check, Needs::kNothing},
    {"ps", kPods, "[FLAGS]", "list pods",
     "  wherry ps -a\n  wherry rm -f $(wherry ps -aq -l app=web)", kAny, declare_ps},
    {"inspect", kPods, "[FLAGS] POD[/CONTAINER]...",
     "status and specification as JSON: an object, or an array for several targets",
     "  wherry inspect web | jq .exitCode\n  wherry inspect --all web | jq .configs.main.mounts",
     kAny, declare_inspect},
    {"logs", kPods, "[FLAGS] POD[/CONTAINER]", "what a container has said",
     "  wherry logs -f --tail 10 web/nginx", kAny, declare_logs},
    {"exec", kPods, "[FLAGS] POD[/CONTAINER] COMMAND [ARG...]",
     "run one process more in a container",
     "  wherry exec -it web sh\n  echo hello | wherry exec -i web/nginx cat", Operands::kEndFlags,
     declare_exec},
    {"attach", kPods, "POD[/CONTAINER]",
     "connect to a running container's streams; ctrl-p ctrl-q leaves a terminal",
     "  wherry attach web", kAny, declare_attach},
    {"wait", kPods, "[FLAGS] POD[/CONTAINER]...",
     "wait until a pod has ended, or a container will not run again; print the exit code",
     "  wherry wait job\n  wherry wait --timeout 60 web/migrate", kAny, declare_wait},
    {"stop", kPods, "[FLAGS] POD[/CONTAINER]...", "end it: its stop signal, then a kill",
     "  wherry stop -t 3 web", kAny, declare_stop},
    {"kill", kPods, "[FLAGS] POD[/CONTAINER]...", "send a signal", "  wherry kill -s HUP web/nginx",
     kAny, declare_kill},
    {"rm", kPods, "[FLAGS] POD...", "remove pods that have ended", "  wherry rm -f web", kAny,
     declare_rm},
    {"events", kPods, "[FLAGS] [POD]", "what happened to all pods, or to those of a name or id",
     "  wherry events web\n  wherry events -f --since 120 -o json", kAny, declare_events},
    {"image import", kImages, "PATH [NAME]",
     "an OCI layout, a docker-archive, or a root file system (tar or directory)",
     "  wherry image import hello.tar localhost/hello:latest", kAny, declare_image_import},
    {"image ls", kImages, "[FLAGS]", "list images", "  wherry image ls -o json", kAny,
     declare_image_ls},
    {"image rm", kImages, "NAME|DIGEST...",
     "take a name away (a digest: all its names), and what no name and no pod holds",
     "  wherry image rm localhost/hello:latest", kAny, declare_image_rm},
    {"shim ls", kLook, "[FLAGS]", "keepers and workers", "  wherry shim ls", kAny, declare_shim_ls},
    {"shim inspect", kLook, "POD", "a pod's keeper and worker, also when they hang or are dead",
     "  wherry shim inspect web", kAny, declare_shim_inspect},
    {"shim call", kLook, "POD METHOD [PARAMS]", "one request to a worker; PARAMS is a JSON object",
     "  wherry shim call web ping\n"
     "  wherry shim call web kill '{\"container\": \"nginx\", \"signal\": \"HUP\"}'",
     kAny, declare_shim_call},
    {"leaks", kLook, "[FLAGS]", "what is left on the host and belongs to no living pod",
     "  wherry leaks -o json", kAny, declare_leaks},
    {"info", kLook, "[FLAGS]", "this node: kernel, cgroups, defences, paths, counts",
     "  wherry info -o json", kAny, declare_info},
    {"version", kLook, "[FLAGS]", "print the version", "  wherry version -o json", kAny,
     declare_version, Needs::kNothing},
};

// ---- parsing
// --------------------------------------------------------------------------------------

void from_environment(const char* name, std::string& into) {
  if (const char* value = ::secure_getenv(name); value != nullptr && *value != '\0') into = value;
}

std::string overview() {
  std::string out = "\nVerbs (wherry VERB --help tells more):\n";
  const char* group = "";
  for (const auto& verb : kVerbs) {
    if (std::string_view{group} != verb.group) out += cat("\n", verb.group, "\n");
    group = verb.group;
    const std::string name = verb.name;
    out += cat("  ", name, std::string(14 - std::min<std::size_t>(name.size(), 13), ' '),
               verb.summary, "\n");
  }
  return cat(out, "\nExample:\n  wherry run --rm localhost/hello:latest echo hello");
}

// The verb at the front of `words`, which it takes off: one word, or two for "pod run".
const Verb* take_verb(Words& words) {
  for (const auto& verb : kVerbs) {
    const auto parts = split(verb.name, ' ');
    if (words.size() < parts.size() || !std::equal(parts.begin(), parts.end(), words.begin()))
      continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(parts.size()));
    return &verb;
  }
  return nullptr;
}

std::vector<const Verb*> verbs_of_group(const std::string& group) {
  std::vector<const Verb*> verbs;
  for (const auto& verb : kVerbs)
    if (const auto parts = split(verb.name, ' '); parts.size() == 2 && parts[0] == group)
      verbs.push_back(&verb);
  return verbs;
}

std::string group_help(const std::string& group) {
  std::string out = cat("Usage: wherry ", group, " VERB ...\n\nVerbs:\n");
  for (const auto* verb : verbs_of_group(group))
    out += cat("  wherry ", verb->name, " ", verb->operands, "\n      ", verb->summary, "\n");
  return cat(out, "\nExample:\n", verbs_of_group(group).front()->examples, "\n");
}

Error unknown_verb(const Words& words) {
  std::string within;
  for (const auto* verb : verbs_of_group(words[0]))
    within += cat(within.empty() ? "" : ", ", split(verb->name, ' ')[1]);
  const bool is_group = !within.empty();
  if (is_group && (words.size() == 1 || words[1].starts_with('-')))
    return Error::make(Code::kInvalid, cat("'", words[0], "' needs a verb: ", within))
        .hint(cat("wherry ", words[0], " --help"));
  std::vector<std::string_view> names;
  for (const auto& verb : kVerbs) names.emplace_back(verb.name);
  const auto meant =
      is_group ? nearest_verb(names, words[0], words[1]) : nearest_verb(names, {}, words[0]);
  const auto guess = meant.empty() ? "" : cat("did you mean 'wherry ", meant, "'? ");
  if (is_group)
    return Error::make(Code::kInvalid, cat("'", words[0], "' has no verb ", in_quotes(words[1])))
        .hint(cat(guess, "it has ", within));
  return Error::make(Code::kInvalid, cat("there is no verb ", in_quotes(words[0])))
      .hint(cat(guess, "wherry --help lists them"));
}

bool asks_for_help(const std::string& word) {
  return word == "-h" || word == "--help";
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, char** argv) {
  CommandLine command;
  auto& global = command.global;
  global.arguments = argv;
  from_environment("WHERRY_ROOT", global.places.root);
  from_environment("WHERRY_STATE", global.places.state);
  from_environment("WHERRY_CGROUP_PARENT", global.places.cgroup_parent);

  CLI::App top{
      "wherry runs pods straight on the kernel. It needs root: all verbs but version and pod "
      "check.",
      "wherry"};
  top.formatter(std::make_shared<VerbFormatter>("wherry [FLAGS] VERB ..."));
  top.set_help_flag("-h,--help", "print this, or the help of a verb");
  bool wants_version = false;
  top.add_flag("--version", wants_version, "print the version");
  add_value(top, "--root", global.places.root, "DIR: the store (WHERRY_ROOT, /var/lib/wherry)");
  add_value(top, "--state", global.places.state, "DIR: of this boot (WHERRY_STATE, /run/wherry)");
  add_value(top, "--cgroup-parent", global.places.cgroup_parent,
            "PATH: of all pods (WHERRY_CGROUP_PARENT, /wherry)");
  add_value(top, "--log-level", global.log_level, "debug, info, warning or error (warning)");
  top.footer(overview);

  Words words(argv + std::min(argc, 1), argv + argc);
  const auto cut = split_at_operand(top, words);
  Words flags{words.begin(), words.begin() + static_cast<long>(cut.flags)};
  if (auto help = TRY(parse(top, std::move(flags), {}, "wherry [FLAGS] VERB ..."))) {
    command.text = std::move(*help);
    return command;
  }
  words.erase(words.begin(), words.begin() + static_cast<long>(cut.operands));
  if (wants_version) words = {"version"};
  if (words.empty()) return Error::make(Code::kInvalid, "a verb is missing").hint("wherry --help");
  if (words[0] == "help") {
    words.erase(words.begin());
    words.push_back("--help");
    if (words.size() == 1) {
      command.text = top.help();
      return command;
    }
  }

  const auto* verb = take_verb(words);
  if (verb == nullptr) {
    if (words.size() < 2 || !asks_for_help(words[1]) || verbs_of_group(words[0]).empty())
      return unknown_verb(words);
    command.text = group_help(words[0]);
    return command;
  }
  command.needs_root = verb->needs == Needs::kRoot;
  const auto name = cat("wherry ", verb->name), usage = cat(name, " ", verb->operands);
  CLI::App app{verb->summary, name};
  app.formatter(std::make_shared<VerbFormatter>(usage));
  app.set_help_flag("-h,--help", "print this");
  app.footer(cat("Examples:\n", verb->examples));
  const auto operands = std::make_shared<Words>();
  verb->declare(app, command, operands);
  if (verb->where == Operands::kEndFlags) {
    const auto end = split_at_operand(app, words);
    operands->assign(words.begin() + static_cast<long>(end.operands), words.end());
    words.resize(end.flags);
  }
  if (auto help = TRY(parse(app, std::move(words), verb->name, usage))) {
    command.text = std::move(*help);
    command.verb = nullptr;
  }
  return command;
}

}  // namespace wherry::cli
