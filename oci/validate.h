// The rules of the runtime-spec that a document can be held to without a kernel. Internal to oci/;
// the way in from outside is validate() of oci/config.h.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "oci/config.h"
#include "oci/node.h"

namespace wherry::oci {

struct Rules {
  std::vector<Problem> problems, notes;

  void problem(std::string pointer, std::string message) {
    problems.push_back({std::move(pointer), 0, 0, std::move(message), {}});
  }
  void note(std::string pointer, std::string message) {
    notes.push_back({std::move(pointer), 0, 0, std::move(message), {}});
  }

  using Words = std::initializer_list<std::string_view>;
  void one_of(const std::string& pointer, std::string_view value, Words words);
  void absolute(const std::string& pointer, std::string_view path);
  void no_control(const std::string& pointer, std::string_view value);
  void cpu_list(const std::string& pointer, std::string_view value);  // "0-3,7"; empty is allowed
  void environment(const std::string& pointer,
                   const std::vector<std::string>& env);  // NAME=VALUE each
  void mappings(const std::string& pointer, const std::vector<IdMapping>& mappings);
  void interface_name(const std::string& pointer, std::string_view name);
};

std::string member(std::string pointer, std::string_view name);  // pointer/name, escaped
std::string element(const std::string& pointer, std::size_t index);

void check(Rules& rules, const Spec& spec);
void check(Rules& rules, const Process& process);  // pointers as in a document of its own: "/cwd"
void check_process(Rules& rules, const std::string& pointer, const Process& process);
void check_mount(Rules& rules, const std::string& pointer, const Mount& mount);
void check(Rules& rules, const Hooks& hooks);
void check_hooks(Rules& rules, const std::string& pointer, const Hooks& hooks);
void check_linux(Rules& rules, const Spec& spec, const Linux& lin);
void check_resources(Rules& rules, const std::string& pointer, const Resources& resources);
void check_seccomp(Rules& rules, const std::string& pointer, const Seccomp& seccomp);
bool has_namespace(const Spec& spec, NamespaceType type);

}  // namespace wherry::oci
