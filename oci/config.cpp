#include "oci/config.h"

#include <fcntl.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "oci/document.h"
#include "oci/fields.h"
#include "oci/seccomp_profile.h"
#include "oci/validate.h"
#include "oci/writer.h"

namespace wherry::oci {
namespace {

bool on_one_path(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '/');
}

// A rule that is broken only because a value could not be read is no second problem.
void add_broken_rules(std::vector<Problem> broken, const Node& root,
                      std::vector<Finding>& findings) {
  const auto unreadable = findings.size();
  for (auto& problem : broken) {
    const auto end = findings.begin() + static_cast<std::ptrdiff_t>(unreadable);
    const bool follows = std::any_of(findings.begin(), end, [&](const Finding& f) {
      return on_one_path(f.pointer, problem.pointer);
    });
    if (follows) continue;
    const auto offset = find_node(root, problem.pointer).offset;
    findings.push_back({std::move(problem.pointer), offset, std::move(problem.message)});
  }
}

template <class T>
struct Parsed {
  T value;
  std::vector<std::string> notes;
};

template <class T>
Result<Parsed<T>> parse(std::string_view json, std::string_view file_name) {
  const auto root = TRY(parse_tree(json, file_name));
  Findings findings;
  Parsed<T> out;
  read(Cursor{&findings, &root}, out.value);
  Rules rules;
  check(rules, out.value);
  add_broken_rules(std::move(rules.problems), root, findings.problems);
  if (!findings.problems.empty()) return to_error(std::move(findings.problems), json, file_name);
  for (auto& note : rules.notes) {
    const auto offset = find_node(root, note.pointer).offset;
    findings.notes.push_back({std::move(note.pointer), offset, std::move(note.message)});
  }
  out.notes = to_lines(std::move(findings.notes), json, file_name);
  return out;
}

// A string of a Spec that was built may hold what no document can say.
void find_nul(const Json& value, const std::string& pointer, std::vector<Problem>& problems) {
  if (value.is_string() && value.get_ref<const std::string&>().find('\0') != std::string::npos)
    problems.push_back({pointer, 0, 0, "a NUL character cannot be part of any value", {}});
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      find_nul(value[i], cat(pointer, '/', i), problems);
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.items()) {
    auto below = pointer;
    append_to_pointer(below, key);
    if (key.find('\0') != std::string::npos)
      problems.push_back({below, 0, 0, "a NUL character cannot be part of a key", {}});
    find_nul(member, below, problems);
  }
}

}  // namespace

Result<Document> parse_config(std::string_view json, std::string_view file_name) {
  auto parsed = TRY(parse<Spec>(json, file_name));
  return Document{std::move(parsed.value), std::move(parsed.notes)};
}

Result<Process> parse_process(std::string_view json, std::string_view file_name) {
  return TRY(parse<Process>(json, file_name)).value;
}

Result<Hooks> parse_hooks(std::string_view json, std::string_view file_name) {
  return TRY(parse<Hooks>(json, file_name)).value;
}

Result<Seccomp> parse_seccomp(std::string_view json, std::string_view file_name) {
  const auto root = TRY(parse_tree(json, file_name));
  Findings findings;
  Seccomp seccomp;
  read(Cursor{&findings, &root}, seccomp);
  Rules rules;
  check_seccomp(rules, {}, seccomp);
  add_broken_rules(std::move(rules.problems), root, findings.problems);
  findings.problems.insert(findings.problems.end(), findings.notes.begin(), findings.notes.end());
  if (!findings.problems.empty()) return to_error(std::move(findings.problems), json, file_name);
  return seccomp;
}

Result<Seccomp> load_seccomp(const std::string& path) {
  constexpr std::size_t kLongestProfile = std::size_t{1} << 20;
  return parse_seccomp(TRY_CTX(read_file_at(AT_FDCWD, path, kLongestProfile), "seccomp profile"),
                       path);
}

std::vector<Problem> validate(const Spec& spec) {
  Rules rules;
  check(rules, spec);
  find_nul(to_json(spec), {}, rules.problems);
  return std::move(rules.problems);
}

Json to_json(const Spec& spec) {
  return write(spec);
}
Json to_json(const Process& process) {
  return write(process);
}
Json to_json(const Hooks& hooks) {
  return write(hooks);
}

}  // namespace wherry::oci
