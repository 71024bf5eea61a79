#include "tools/wherry/run_flags.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "oci/seccomp_profile.h"
#include "runtime/pod/machine.h"

namespace wherry::cli {
namespace {

constexpr std::int64_t kLongestGrace = 7 * 24 * 3600;  // seconds
constexpr double kMostCpus = 1'000'000;
constexpr std::uint64_t kLeastMemory = 512 * 1024;  // a container has been seen to start in 256k

Error wrong(std::string_view flag, std::string_view text, std::string_view why) {
  return Error::make(Code::kInvalid, cat(flag, ": ", in_quotes(text), " ", why));
}
Error refused(std::string_view flag, std::string_view text, std::string_view why) {
  return Error::make(Code::kUnsupported, cat(flag, ": ", in_quotes(text), " ", why));
}

Result<std::string> absolute(std::string_view flag, const std::string& path) {
  if (path.empty()) return wrong(flag, path, "is empty");
  if (path[0] == '/') return path;
  return cat(TRY(sys::readlinkat(AT_FDCWD, "/proc/self/cwd")), "/", path);
}

// Digits with at most one point.
Result<double> parse_decimal(std::string_view flag, std::string_view text) {
  if (text.size() > 1 && text[0] == '-') return wrong(flag, text, "must be positive");
  const bool plain = !text.empty() &&
                     text.find_first_not_of("0123456789.") == std::string_view::npos &&
                     std::count(text.begin(), text.end(), '.') < 2 && text != ".";
  double value = 0;
  if (plain && std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{})
    return value;
  return wrong(flag, text, "is not a number");
}

Result<> set_limits(const RunOptions& options, pod::Limits& limits) {
  if (options.memory) {
    limits.memory_bytes = TRY_CTX(parse_size(*options.memory), "--memory");
    if (*limits.memory_bytes < kLeastMemory)
      return wrong("--memory", *options.memory, "is less than 512k, and nothing starts in that");
  }
  if (options.cpus) {
    const double cpus = TRY(parse_decimal("--cpus", *options.cpus));
    // The kernel's smallest quota is 1 ms in a period of 100 ms.
    if (cpus < 0.01 || cpus > kMostCpus)
      return wrong("--cpus", *options.cpus, "is not between 0.01 and 1000000");
    limits.cpu_milli = static_cast<std::uint64_t>(std::ceil(cpus * 1000));
  }
  if (options.pids_limit) {
    if (*options.pids_limit < -1)
      return wrong("--pids-limit", std::to_string(*options.pids_limit),
                   "is neither -1 nor a count");
    limits.pids = *options.pids_limit <= 0 ? -1 : *options.pids_limit;
  }
  return {};
}

Result<> set_security_option(const std::string& text, pod::Security& security) {
  constexpr char kFlag[] = "--security-opt";
  const auto cut = std::min(text.find('='), text.find(':'));
  const auto key = text.substr(0, cut);
  const auto value = cut == std::string::npos ? std::string{} : text.substr(cut + 1);
  if (key == "no-new-privileges") {
    if (cut != std::string::npos && value != "true" && value != "false")
      return wrong(kFlag, text, "says neither true nor false");
    security.allow_privilege_escalation = value == "false";
    return {};
  }
  if (key == "seccomp") {
    if (value.empty()) return wrong(kFlag, text, "names neither 'unconfined' nor a file");
    if (value == "unconfined") {
      security.seccomp = pod::SeccompMode::kUnconfined;
      return {};
    }
    security.seccomp = pod::SeccompMode::kLocalhost;
    security.seccomp_profile = TRY(absolute(kFlag, value));
    static_cast<void>(TRY_CTX(oci::load_seccomp(security.seccomp_profile), kFlag));
    return {};
  }
  return refused(kFlag, text, "is not supported; it is no-new-privileges or seccomp");
}

Result<> set_security(const RunOptions& options, pod::Security& security) {
  security.user = options.user;
  security.cap_add = options.cap_add;
  security.cap_drop = options.cap_drop;
  security.read_only_root = options.read_only;
  security.privileged = options.privileged;
  // A privileged container may raise its privileges: that is what it is for.
  security.allow_privilege_escalation = options.privileged;
  for (const auto& option : options.security) TRY(set_security_option(option, security));
  return {};
}

Result<> set_volume_options(const std::string& text, std::string_view words,
                            pod::VolumeMount& mount) {
  constexpr char kFlag[] = "-v";
  for (const auto word : split(words, ',')) {
    if (word == "ro")
      mount.read_only = true;
    else if (word == "rw")
      mount.read_only = false;
    else if (word == "private" || word == "rprivate")
      mount.propagation = "private";
    else if (word == "rslave" || word == "rshared")
      mount.propagation = word;
    else if (word == "z" || word == "Z")
      return refused(kFlag, text, "asks for a SELinux label, and labels are not supported");
    else
      return refused(kFlag, text,
                     cat("has the option ", in_quotes(word), ", which is not supported"));
  }
  return {};
}

// SRC:DST[:OPTIONS]. A path with a colon in it cannot be said here; a manifest can.
Result<> add_volume(const std::string& text, pod::Pod& pod) {
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty() || parts[1].empty())
    return wrong("-v", text, "is not SRC:DST or SRC:DST:OPTIONS");
  const std::string source{parts[0]};
  if (source.find('/') == std::string::npos && source != "." && source != "..")
    return refused("-v", text, cat("names a volume, and there are only paths: ./", source, "?"));
  if (parts[1][0] != '/') return wrong("-v", text, "has a destination that is not absolute");
  pod::Volume volume;
  volume.name = cat("v", pod.volumes.size());
  volume.kind = pod::Volume::Kind::kHostPath;
  volume.host_path = TRY(absolute("-v", source));
  TRY_CTX(sys::fstatat(AT_FDCWD, volume.host_path, 0), cat("-v: '", text, "'"));
  pod::VolumeMount mount;
  mount.volume = volume.name;
  mount.mount_path = parts[1];
  if (parts.size() == 3) TRY(set_volume_options(text, parts[2], mount));
  pod.volumes.push_back(std::move(volume));
  pod.containers.front().mounts.push_back(std::move(mount));
  return {};
}

// PATH[:PATH][:rwm]
Result<pod::HostDevice> device_of(const std::string& text) {
  const auto parts = split(text, ':');
  pod::HostDevice device;
  device.host_path = parts[0];
  device.container_path = parts[0];
  std::size_t next = 1;
  if (next < parts.size() && !parts[next].empty() && parts[next][0] == '/')
    device.container_path = parts[next++];
  if (next < parts.size()) device.permissions = parts[next++];
  const auto& allowed = device.permissions;
  if (next != parts.size() || device.host_path.empty() || device.host_path[0] != '/')
    return wrong("--device", text, "is not /dev/X, /dev/X:/dev/Y or one of them with :rwm");
  if (allowed.empty() || allowed.find_first_not_of("rwm") != std::string::npos)
    return wrong("--device", text, "has permissions that are not of 'rwm'");
  const auto st = TRY_CTX(sys::fstatat(AT_FDCWD, device.host_path, 0), "--device");
  if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
    return wrong("--device", text, "is not a device");
  return device;
}

Result<pod::Network> network_of(const std::string& word) {
  if (word == "pod") return pod::Network::kPod;
  if (word == "none") return pod::Network::kNone;
  if (word == "host") return pod::Network::kHost;
  return refused("--network", word, "is not supported; it is none, host or pod");
}

Result<pod::Restart> restart_of(const std::string& word) {
  if (word == "no" || word == "never") return pod::Restart::kNever;
  if (word == "on-failure") return pod::Restart::kOnFailure;
  if (word == "always") return pod::Restart::kAlways;
  return refused("--restart", word, "is not supported; it is no, on-failure or always");
}

Result<std::vector<std::string>> entrypoint_of(const std::string& text) {
  if (text.empty() || text[0] != '[') return std::vector<std::string>{text};
  const auto list = TRY(parse_json(text, "--entrypoint"));
  std::vector<std::string> words;
  for (const auto& word : list) {
    if (!word.is_string()) return wrong("--entrypoint", text, "is not an array of strings");
    words.push_back(word.get<std::string>());
  }
  if (words.empty()) words.emplace_back();
  return words;
}

// IMAGE and COMMAND. The image's entrypoint stays unless --entrypoint is given; "" takes it away.
Result<> set_command(const RunOptions& options, pod::Container& container) {
  auto first = options.operands.begin();
  if (options.rootfs.empty()) {
    if (first == options.operands.end())
      return Error::make(Code::kInvalid, "run: an image is missing").hint("wherry run --help");
    container.image = *first++;
  } else {
    container.rootfs_dir = TRY(absolute("--rootfs", options.rootfs));
    container.image = container.rootfs_dir;  // what listings show
  }
  std::vector<std::string> command{first, options.operands.end()};
  if (options.rootfs.empty()) command = command_after_first(options.operands);
  if (!options.entrypoint) {
    container.args = std::move(command);
  } else if (options.entrypoint->empty()) {
    container.command = std::move(command);
    if (container.command.empty())
      return Error::make(Code::kInvalid, "--entrypoint: it is empty, and there is no command");
  } else {
    container.command = TRY(entrypoint_of(*options.entrypoint));
    container.args = std::move(command);
  }
  return {};
}

Result<> check_together(const RunOptions& options, const pod::Pod& pod) {
  if (options.rm && pod.restart != pod::Restart::kNever)
    return Error::make(Code::kInvalid,
                       "--rm and --restart: a pod that starts again is not removed");
  if (options.stop_timeout < 0 || options.stop_timeout > kLongestGrace)
    return wrong("--stop-timeout", std::to_string(options.stop_timeout),
                 "is not between 0 seconds and a week");
  if (pod.network == pod::Network::kHost && !options.hostname.empty())
    return Error::make(Code::kInvalid, "--hostname: with --network host the name is the host's");
  return {};
}

}  // namespace

std::pair<std::string, std::string> key_and_value(std::string_view text) {
  const auto cut = text.find('=');
  if (cut == std::string_view::npos) return {std::string{text}, {}};
  return {std::string{text.substr(0, cut)}, std::string{text.substr(cut + 1)}};
}

std::vector<std::string> command_after_first(const std::vector<std::string>& operands) {
  auto at = operands.begin() + std::min<std::ptrdiff_t>(1, std::ssize(operands));
  if (at != operands.end() && *at == "--") ++at;
  return {at, operands.end()};
}

Result<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "bkmgt";
  auto number = text;
  int shift = 0;
  if (text.starts_with('-'))
    return Error::make(Code::kInvalid, cat(in_quotes(text), " must be positive"));
  const auto cut = text.find_first_not_of("0123456789.");
  if (cut != std::string_view::npos) {
    number = text.substr(0, cut);
    std::string unit;
    for (const char c : text.substr(cut)) unit += static_cast<char>(c | 0x20);
    const auto at = kUnits.find(unit[0]);
    const bool known =
        unit.size() == 1 || (at > 0 && (unit.substr(1) == "b" || unit.substr(1) == "ib"));
    if (at == std::string_view::npos || !known)
      return Error::make(Code::kInvalid, cat(in_quotes(text), " ends in no unit of b, k, m, g, t"));
    shift = static_cast<int>(at) * 10;
  }
  const double value = std::ldexp(TRY(parse_decimal("size", number)), shift);
  if (value >= 0x1p63) return Error::make(Code::kInvalid, cat(in_quotes(text), " is too much"));
  return static_cast<std::uint64_t>(value);
}

Result<std::vector<std::pair<std::string, std::string>>> environment_of(
    const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& word : words) {
    auto entry = key_and_value(word);
    if (entry.first.empty()) return wrong("-e", word, "has no name");
    if (word.find('=') == std::string::npos) {
      const char* own = std::getenv(word.c_str());
      if (own == nullptr) continue;
      entry.second = own;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Result<pod::Pod> pod_of_flags(const RunOptions& options) {
  pod::Pod pod;
  pod.name = options.name;
  pod.ns = options.ns;
  pod.hostname = options.hostname;
  pod.restart = TRY(restart_of(options.restart));
  pod.network = TRY(network_of(options.network));
  pod.grace = std::chrono::seconds{options.stop_timeout};
  pod.remove_when_done = options.rm;
  TRY(check_together(options, pod));
  for (const auto& label : options.labels) {
    auto [key, value] = key_and_value(label);
    if (key.empty()) return wrong("-l", label, "has no key");
    pod.labels[std::move(key)] = std::move(value);
  }

  auto& container = pod.containers.emplace_back();
  container.name = kOnlyContainer;
  TRY(set_command(options, container));
  if (!options.workdir.empty() && options.workdir[0] != '/')
    return wrong("-w", options.workdir, "is not absolute");
  container.working_dir = options.workdir;
  container.env = TRY(environment_of(options.env));
  container.stdin_open = options.interactive;
  container.stdin_once = options.interactive && !options.detach;
  container.tty = options.tty;
  if (!options.stop_signal.empty())
    TRY_CTX(pod::signal_number(options.stop_signal), "--stop-signal");
  container.stop_signal = options.stop_signal;
  TRY(set_limits(options, container.limits));
  TRY(set_security(options, container.security));
  for (const auto& text : options.volumes) TRY(add_volume(text, pod));
  for (const auto& text : options.devices) container.devices.push_back(TRY(device_of(text)));
  return pod;
}

}  // namespace wherry::cli
