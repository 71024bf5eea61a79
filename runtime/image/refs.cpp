#include "runtime/image/refs.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "runtime/image/store.h"

namespace wherry::image {
namespace {

constexpr std::size_t kLongestName =
    255;  // bytes, of a file name; with the longest tag less than the grammar allows
constexpr std::size_t kLongestTag = 128;

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alnum(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

// [a-z0-9]+ joined by '.', '_', '__' or dashes (distribution/reference).
bool is_path_component(std::string_view text) {
  if (text.empty() || !is_lower_or_digit(text.front()) || !is_lower_or_digit(text.back()))
    return false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && !is_lower_or_digit(text[end])) ++end;
    const auto separator = text.substr(i, end - i);
    const bool dashes = separator.find_first_not_of('-') == std::string_view::npos;
    if (!dashes && separator != "." && separator != "_" && separator != "__") return false;
    i = end == i ? i + 1 : end;
  }
  return true;
}

// host[:port]; told from a path component by '.', ':' or "localhost".
bool is_registry(std::string_view text) {
  return text == "localhost" || text.find_first_of(".:") != std::string_view::npos;
}
bool is_valid_registry(std::string_view text) {
  const auto colon = text.find(':');
  const auto host = text.substr(0, colon);
  if (colon != std::string_view::npos && !parse_int<std::uint16_t>(text.substr(colon + 1)))
    return false;
  return !host.empty() && is_alnum(host.front()) && is_alnum(host.back()) &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return is_alnum(c) || c == '.' || c == '-'; });
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= kLongestTag &&
         (is_alnum(text.front()) || text.front() == '_') &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

Error bad_name(std::string_view text) {
  return Error::make(Code::kInvalid, cat(in_quotes(text), " is not an image name"));
}

std::string file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '%');
  return name;
}

}  // namespace

Result<Reference> parse_reference(std::string_view text) {
  Reference result;
  auto rest = text;
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    result.digest = TRY_CTX(oci::parse_digest(rest.substr(at + 1)), in_quotes(text)).text();
    rest = rest.substr(0, at);
  }
  const auto slash = rest.rfind('/');
  if (const auto colon = rest.rfind(':');
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    result.tag = rest.substr(colon + 1);
    if (!is_tag(result.tag)) return bad_name(text);
    rest = rest.substr(0, colon);
  }
  const auto parts = split(rest, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool registry = i == 0 && parts.size() > 1 && is_registry(parts[i]);
    if (registry ? !is_valid_registry(parts[i]) : !is_path_component(parts[i]))
      return bad_name(text);
  }
  result.name = rest;
  return result;
}

Result<std::string> full_reference(std::string_view text, std::string_view default_registry) {
  auto reference = TRY(parse_reference(text));
  if (!reference.digest.empty())
    return Error::make(Code::kInvalid, cat(in_quotes(text), " names a digest, not a tag"))
        .hint("name it NAME:TAG");
  const auto slash = reference.name.find('/');
  const bool has_registry =
      slash != std::string::npos && is_registry(std::string_view{reference.name}.substr(0, slash));
  auto name = has_registry ? reference.name : cat(default_registry, "/", reference.name);
  constexpr std::string_view kHub = "docker.io/";
  if (name.starts_with(kHub) && name.find('/', kHub.size()) == std::string::npos)
    name.insert(kHub.size(), "library/");
  name += ':';
  name += reference.tag.empty() ? "latest" : reference.tag;
  if (name.size() > kLongestName)
    return Error::make(Code::kInvalid,
                       cat("image name of ", name.size(), " bytes, more than ", kLongestName));
  return name;
}

Result<std::string> normalise_reference(std::string_view text) {
  return full_reference(text, "localhost");
}

bool matches(std::string_view stored, const Reference& asked) {
  const auto colon = stored.rfind(':');
  const auto name = stored.substr(0, colon), tag = stored.substr(colon + 1);
  if (asked.digest.empty() ? tag != (asked.tag.empty() ? "latest" : asked.tag)
                           : !asked.tag.empty() && tag != asked.tag)
    return false;
  if (!name.ends_with(asked.name)) return false;
  return name.size() == asked.name.size() || name[name.size() - asked.name.size() - 1] == '/';
}

Result<std::map<std::string, oci::Digest>> read_refs(const Content& content) {
  constexpr std::size_t kLargestRef = 4096;
  std::map<std::string, oci::Digest> refs;
  for (const auto& file : TRY(list_dir(content.refs()))) {
    if (file.starts_with('.')) continue;  // being written
    const auto text = read_file_at(content.refs(), file, kLargestRef);
    if (!text.ok() && text.error().code() == Code::kNotFound) continue;  // removed since
    if (!text.ok())
      return Error::make(text.error().code(),
                         cat("image name ", in_quotes(file), ": ", text.error().message()));
    auto name = file;
    std::replace(name.begin(), name.end(), '%', '/');
    refs.emplace(std::move(name), TRY_CTX(oci::parse_digest(trim(text.value())),
                                          cat("image name ", in_quotes(file))));
  }
  return refs;
}

Result<> write_ref(const Content& content, const std::string& name, const oci::Digest& digest) {
  return write_file_atomic(content.refs(), file_name(name), digest.text() + "\n", 0600);
}

Result<> remove_ref(const Content& content, const std::string& name) {
  return sys::unlinkat(content.refs(), file_name(name), 0);
}

}  // namespace wherry::image
