// env: values, references, and the $(NAME) of Kubernetes.
#include <algorithm>

#include "runtime/pod/manifest_parts.h"

namespace wherry::pod {
namespace {

const std::string* find(const Variables& variables, std::string_view name) {
  const auto it = std::find_if(variables.rbegin(), variables.rend(),
                               [&](const auto& v) { return v.first == name; });
  return it == variables.rend() ? nullptr : &it->second;
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return c > 0x20 && c < 0x7f && c != '='; });
}

// Labels and annotations: "metadata.labels['key']".
std::optional<std::string> subscript(std::string_view path, std::string_view member) {
  if (!path.starts_with(member)) return std::nullopt;
  path.remove_prefix(member.size());
  if (!path.starts_with("['") || !path.ends_with("']") || path.size() < 5) return std::nullopt;
  return std::string{path.substr(2, path.size() - 4)};
}

std::optional<std::string> read_field_ref(Findings& findings, const Field& field, const Pod& pod) {
  Object object{findings, field};
  object.ignore("apiVersion");
  const auto path = object.require("fieldPath");
  object.rest();
  if (!path) return std::nullopt;
  const auto text = as_string(findings, *path);
  if (!text) return std::nullopt;
  auto value = field_reference(pod, *text);
  if (!value)
    findings.problem(path->node, path->name,
                     cat(in_quotes(*text), " is not known before the pod runs, or not a field"));
  return value;
}

std::optional<std::string> read_resource_ref(Findings& findings, const Field& field,
                                             const ResourceReading& resources,
                                             std::string_view container) {
  Object object{findings, field};
  const auto other = object.string("containerName");
  const auto resource = object.required_string("resource");
  const auto divisor_field = object.take("divisor");
  object.rest();
  Quantity divisor;
  if (divisor_field) divisor = as_quantity(findings, *divisor_field).value_or(Quantity{});
  if (!other.empty() && other != container) {
    object.problem("of another container is not supported");
    return std::nullopt;
  }
  const std::optional<Quantity>* quantity = nullptr;
  if (resource == "limits.cpu") quantity = &resources.cpu_limit;
  if (resource == "limits.memory") quantity = &resources.memory_limit;
  if (resource == "requests.cpu")
    quantity = &(resources.cpu_request ? resources.cpu_request : resources.cpu_limit);
  if (resource == "requests.memory")
    quantity = &(resources.memory_request ? resources.memory_request : resources.memory_limit);
  if (quantity == nullptr) {
    if (!resource.empty()) object.problem(cat(in_quotes(resource), " is not supported"));
    return std::nullopt;
  }
  if (!*quantity) {
    object.problem(
        cat(in_quotes(resource), " is not set, and what the node can give is not known here"));
    return std::nullopt;
  }
  return std::to_string(divide_up(**quantity, divisor));
}

// A key of something that is in another document: left out when it is optional, refused when it is
// not.
void read_key_ref(Findings& findings, const Field& field, std::string_view what) {
  Object object{findings, field};
  const auto name = object.string("name");
  object.ignore("key");
  object.ignore("path");
  object.ignore("volumeName");
  const bool optional = object.boolean("optional").value_or(false);
  object.rest();
  if (optional)
    findings.warning(field.node, field.name,
                     cat("is left out: there is no ", what, " ", in_quotes(name)));
  else
    findings.problem(field.node, field.name,
                     cat(what, " ", in_quotes(name), " is not supplied: not supported"));
}

std::optional<std::string> read_value_from(Findings& findings, const Field& field, const Pod& pod,
                                           const ResourceReading& resources,
                                           std::string_view container) {
  Object object{findings, field};
  std::optional<std::string> value;
  std::size_t sources = 0;
  const auto source = [&](std::string_view key) {
    auto found = object.take(key);
    if (found) ++sources;
    return found;
  };
  if (const auto ref = source("fieldRef")) value = read_field_ref(findings, *ref, pod);
  if (const auto ref = source("resourceFieldRef"))
    value = read_resource_ref(findings, *ref, resources, container);
  if (const auto ref = source("configMapKeyRef")) read_key_ref(findings, *ref, "config map");
  if (const auto ref = source("secretKeyRef")) read_key_ref(findings, *ref, "secret");
  if (const auto ref = source("fileKeyRef")) read_key_ref(findings, *ref, "file");
  object.rest();
  if (sources != 1) object.problem("must name one source");
  return value;
}

}  // namespace

std::optional<std::string> field_reference(const Pod& pod, std::string_view path) {
  if (path == "metadata.name") return pod.name;
  if (path == "metadata.namespace") return pod.ns;
  if (path == "spec.serviceAccountName") return "default";
  const auto lookup = [](const auto& map, const std::string& key) {
    const auto it = map.find(key);
    return it == map.end() ? std::string{} : it->second;
  };
  if (const auto key = subscript(path, "metadata.labels")) return lookup(pod.labels, *key);
  if (const auto key = subscript(path, "metadata.annotations"))
    return lookup(pod.annotations, *key);
  return std::nullopt;
}

std::string expand(std::string_view text, const Variables& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    if (text[i + 1] == '$') {
      out.push_back('$');
      ++i;
      continue;
    }
    const auto close = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out.push_back('$');
      continue;
    }
    const auto* value = find(variables, text.substr(i + 2, close - i - 2));
    out += value != nullptr ? *value : std::string{text.substr(i, close - i + 1)};
    i = close;
  }
  return out;
}

Variables read_env(Findings& findings, const std::vector<Field>& items, const Pod& pod,
                   const ResourceReading& resources, std::string_view container) {
  Variables out;
  for (const auto& item : items) {
    Object object{findings, item};
    const auto name = object.required_string("name");
    const auto value_field = object.take("value");
    const auto from = object.take("valueFrom");
    object.rest();
    if (!name.empty() && !is_variable_name(name))
      object.problem(cat(in_quotes(name), " is not a name of a variable"));
    std::optional<std::string> value = std::string{};
    if (value_field) {
      value = as_string(findings, *value_field);
      if (value) value = expand(*value, out);
    }
    if (from && value_field && value && !value->empty())
      object.problem("must have value or valueFrom, not both");
    else if (from)
      value = read_value_from(findings, *from, pod, resources, container);
    if (value && value->find('\0') != std::string::npos) object.problem("the value has a NUL");
    if (value) out.emplace_back(name, std::move(*value));
  }
  return out;
}

}  // namespace wherry::pod
