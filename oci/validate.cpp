#include "oci/validate.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace wherry::oci {

std::string member(std::string pointer, std::string_view name) {
  append_to_pointer(pointer, name);
  return pointer;
}

std::string element(const std::string& pointer, std::size_t index) {
  return cat(pointer, '/', index);
}

void Rules::one_of(const std::string& pointer, std::string_view value, Words words) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return;
  std::string known;
  for (const auto word : words) known += cat(known.empty() ? "" : ", ", in_quotes(word));
  problem(pointer, cat("must be one of ", known, ", not ", in_quotes(value)));
}

void Rules::absolute(const std::string& pointer, std::string_view path) {
  if (!path.starts_with('/'))
    problem(pointer, cat("must be an absolute path, not ", in_quotes(path)));
}

void Rules::no_control(const std::string& pointer, std::string_view value) {
  if (has_control(value))
    problem(pointer, cat("must not hold control characters: ", in_quotes(value)));
}

void Rules::cpu_list(const std::string& pointer, std::string_view value) {
  if (trim(value).empty()) return;
  for (const auto part : split(value, ',')) {
    const auto range = trim(part);
    const auto dash = range.find('-');
    const auto first = parse_int<unsigned>(trim(range.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : parse_int<unsigned>(trim(range.substr(dash + 1)));
    if (first && last && *first <= *last) continue;
    return problem(
        pointer, cat("must be a list of numbers and ranges like '0-3,7', not ", in_quotes(value)));
  }
}

void Rules::environment(const std::string& pointer, const std::vector<std::string>& env) {
  for (std::size_t i = 0; i < env.size(); ++i) {
    const auto equals = env[i].find('=');
    if (equals == std::string::npos || equals == 0)
      problem(element(pointer, i), cat("must have the form NAME=VALUE, not ", in_quotes(env[i])));
  }
}

void Rules::mappings(const std::string& pointer, const std::vector<IdMapping>& mappings) {
  constexpr std::uint64_t kIds = std::uint64_t{1} << 32;
  using Range = std::tuple<std::uint64_t, std::uint64_t, std::size_t>;  // first, end, index
  std::vector<Range> inside, outside;
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const auto& mapping = mappings[i];
    if (mapping.size == 0) problem(element(pointer, i), "must map at least one id: 'size' is 0");
    inside.emplace_back(mapping.container_id, std::uint64_t{mapping.container_id} + mapping.size,
                        i);
    outside.emplace_back(mapping.host_id, std::uint64_t{mapping.host_id} + mapping.size, i);
    if (std::get<1>(inside.back()) > kIds || std::get<1>(outside.back()) > kIds)
      problem(element(pointer, i), "reaches beyond the last id, 4294967295");
  }
  for (const auto& [ranges, word] :
       {std::pair{&inside, "container"}, std::pair{&outside, "host"}}) {
    std::sort(ranges->begin(), ranges->end());
    for (std::size_t i = 1; i < ranges->size(); ++i) {
      const auto& [first, end, index] = (*ranges)[i];
      const auto& [first_before, end_before, before] = (*ranges)[i - 1];
      if (first < end_before && end > first)
        problem(element(pointer, index),
                cat("overlaps the ", word, " ids of the mapping at index ", before));
    }
  }
}

void Rules::interface_name(const std::string& pointer, std::string_view name) {
  constexpr std::size_t kLongest = 15;  // IFNAMSIZ less its NUL
  const bool bad = name.empty() || name.size() > kLongest || name == "." || name == ".." ||
                   name.find_first_of("/: \t") != std::string_view::npos || has_control(name);
  if (bad)
    problem(pointer,
            cat("must be the name of a network interface (1 to 15 bytes), not ", in_quotes(name)));
}

bool has_namespace(const Spec& spec, NamespaceType type) {
  if (!spec.linux_) return false;
  const auto& all = spec.linux_->namespaces;
  return std::any_of(all.begin(), all.end(), [&](const Namespace& ns) { return ns.type == type; });
}

namespace {

// "1.2.3", "1.0.2-dev", "1.0.0-rc.5+build": major and minor, if it is a semantic version.
std::optional<std::pair<unsigned, unsigned>> semantic_version(std::string_view text) {
  const auto core = text.substr(0, text.find_first_of("-+"));
  const auto rest = text.substr(core.size());
  const auto parts = split(core, '.');
  if (parts.size() != 3 || rest.size() == 1) return std::nullopt;
  for (const auto part : parts)
    if (!parse_int<unsigned>(part) || (part.size() > 1 && part[0] == '0')) return std::nullopt;
  constexpr std::string_view kAllowed =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-.+";
  if (rest.find_first_not_of(kAllowed) != std::string_view::npos) return std::nullopt;
  return std::pair{*parse_int<unsigned>(parts[0]), *parse_int<unsigned>(parts[1])};
}

void check_version(Rules& rules, const std::string& text) {
  constexpr unsigned kMinor = 3;  // the newest that is known here
  const auto version = semantic_version(text);
  if (!version)
    return rules.problem("/ociVersion",
                         cat("must be a semantic version like '1.3.0', not ", in_quotes(text)));
  const auto [major, minor] = *version;
  if (major > 1)
    return rules.problem("/ociVersion", cat("version ", text, " is not supported; 1.", kMinor,
                                            " is the newest known"));
  if (major == 1 && minor > kMinor)
    rules.note("/ociVersion",
               cat("version ", text, " is newer than 1.", kMinor, ": what it added is ignored"));
  if (major == 0 || text.starts_with("1.0.0-"))
    rules.note("/ociVersion",
               cat("version ", text, " is a draft of before 1.0.0; it is read as 1.0"));
}

// Each of these changes what is the host's own when the container does not have the namespace.
void check_private(Rules& rules, const Spec& spec) {
  const auto needs = [&](const char* pointer, bool used, NamespaceType type) {
    if (used && !has_namespace(spec, type))
      rules.problem(pointer, cat("needs a namespace of type ", in_quotes(to_string(type)),
                                 " in /linux/namespaces"));
  };
  needs("/hostname", !spec.hostname.empty(), NamespaceType::kUts);
  needs("/domainname", !spec.domainname.empty(), NamespaceType::kUts);
  needs("/mounts", !spec.mounts.empty(), NamespaceType::kMount);
  if (!spec.linux_) return;
  const auto& lin = *spec.linux_;
  needs("/linux/maskedPaths", !lin.masked_paths.empty(), NamespaceType::kMount);
  needs("/linux/readonlyPaths", !lin.readonly_paths.empty(), NamespaceType::kMount);
  needs("/linux/uidMappings", !lin.uid_mappings.empty(), NamespaceType::kUser);
  needs("/linux/gidMappings", !lin.gid_mappings.empty(), NamespaceType::kUser);
  needs("/linux/timeOffsets", !lin.time_offsets.empty(), NamespaceType::kTime);
}

void check_uts_name(Rules& rules, const std::string& pointer, const std::string& name) {
  constexpr std::size_t kLongest = 64;  // __NEW_UTS_LEN
  rules.no_control(pointer, name);
  if (name.size() > kLongest)
    rules.problem(pointer, cat("must be at most 64 bytes long, not ", name.size()));
}

}  // namespace

void check_mount(Rules& rules, const std::string& pointer, const Mount& mount) {
  if (mount.destination.empty())
    rules.problem(member(pointer, "destination"), "must not be empty");
  else if (!mount.destination.starts_with('/'))
    rules.note(member(pointer, "destination"),
               "is relative, which is deprecated: it is taken from '/'");
  const auto& options = mount.options;
  const auto has = [&](std::string_view word) {
    return std::find(options.begin(), options.end(), word) != options.end();
  };
  if (mount.source.empty() && (mount.type == "bind" || has("bind") || has("rbind")))
    rules.problem(member(pointer, "source"), "a bind mount needs a source");
  if (mount.uid_mappings.empty() != mount.gid_mappings.empty())
    rules.problem(pointer, "'uidMappings' and 'gidMappings' must be given together");
  rules.mappings(member(pointer, "uidMappings"), mount.uid_mappings);
  rules.mappings(member(pointer, "gidMappings"), mount.gid_mappings);
}

void check_hooks(Rules& rules, const std::string& at, const Hooks& hooks) {
  const std::pair<const char*, const std::vector<Hook>*> all[] = {
      {"prestart", &hooks.prestart},
      {"createRuntime", &hooks.create_runtime},
      {"createContainer", &hooks.create_container},
      {"startContainer", &hooks.start_container},
      {"poststart", &hooks.poststart},
      {"poststop", &hooks.poststop},
  };
  for (const auto& [name, list] : all) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto& hook = (*list)[i];
      const auto pointer = element(member(at, name), i);
      rules.absolute(member(pointer, "path"), hook.path);
      rules.environment(member(pointer, "env"), hook.env);
      if (hook.timeout == 0U)
        rules.problem(member(pointer, "timeout"), "must be at least 1 second");
    }
  }
}

void check(Rules& rules, const Spec& spec) {
  check_version(rules, spec.oci_version);
  if (!spec.root)
    rules.problem("/root", "is missing but required");
  else if (spec.root->path.empty())
    rules.problem("/root/path", "must not be empty");
  if (spec.process) check_process(rules, "/process", *spec.process);
  check_uts_name(rules, "/hostname", spec.hostname);
  check_uts_name(rules, "/domainname", spec.domainname);
  for (std::size_t i = 0; i < spec.mounts.size(); ++i)
    check_mount(rules, element("/mounts", i), spec.mounts[i]);
  check_hooks(rules, "/hooks", spec.hooks);
  if (spec.linux_) check_linux(rules, spec, *spec.linux_);
  check_private(rules, spec);
  if (spec.annotations.contains(""))
    rules.problem("/annotations/", "the key of an annotation must not be empty");
}

void check(Rules& rules, const Process& process) {
  check_process(rules, {}, process);
}

void check(Rules& rules, const Hooks& hooks) {
  check_hooks(rules, {}, hooks);
}

}  // namespace wherry::oci
