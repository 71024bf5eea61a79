#include "runtime/pod/manifest_reader.h"

#include <algorithm>
#include <array>

namespace wherry::pod {
namespace {

constexpr std::array<std::string_view, 11> kTrue{"true", "True", "TRUE", "yes", "Yes", "YES",
                                                 "on",   "On",   "ON",   "y",   "Y"};
constexpr std::array<std::string_view, 11> kFalse{"false", "False", "FALSE", "no", "No", "NO",
                                                  "off",   "Off",   "OFF",   "n",  "N"};

bool one_of(const std::array<std::string_view, 11>& words, std::string_view text) {
  return !text.empty() && std::find(words.begin(), words.end(), text) != words.end();
}

// The length of a number's digits at the beginning of `text`.
std::size_t digits(std::string_view text) {
  const auto end = text.find_first_not_of("0123456789");
  return end == std::string_view::npos ? text.size() : end;
}

Scalar number_kind(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" ||
      text == ".NAN")
    return Scalar::kFloat;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o' || text[1] == 'b')) {
    const auto rest = text.substr(2);
    const int base = text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 2;
    return parse_int<std::uint64_t>(rest, base) ? Scalar::kInteger : Scalar::kString;
  }
  const auto whole = digits(text);
  if (whole > 0 && whole == text.size()) return Scalar::kInteger;
  text.remove_prefix(whole);
  std::size_t decimals = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = digits(text);
    text.remove_prefix(decimals);
  }
  if (whole + decimals == 0) return Scalar::kString;
  if (text.empty()) return Scalar::kFloat;
  if (text[0] != 'e' && text[0] != 'E') return Scalar::kString;
  text.remove_prefix(1);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && digits(text) == text.size() ? Scalar::kFloat : Scalar::kString;
}

std::string_view kind_name(const YAML::Node& node) {
  if (node.IsMap()) return "an object";
  if (node.IsSequence()) return "a list";
  switch (scalar_kind(node)) {
    case Scalar::kString:
      return "text";
    case Scalar::kInteger:
    case Scalar::kFloat:
      return "a number";
    case Scalar::kBool:
      return "a boolean";
    case Scalar::kNull:
      return "null";
  }
  return "something else";
}

void mismatch(Findings& findings, const Field& field, std::string_view wanted) {
  findings.problem(field.node, field.name,
                   cat("must be ", wanted, " and is ", kind_name(field.node)));
}

}  // namespace

void Findings::problem(const YAML::Node& at, std::string_view field, std::string_view what) {
  problems_.push_back({at.Mark().line, at.Mark().column, place(at, field, what)});
}

void Findings::warning(const YAML::Node& at, std::string_view field, std::string_view what) {
  warnings_.push_back({at.Mark().line, at.Mark().column, place(at, field, what)});
}

std::string Findings::place(const YAML::Node& at, std::string_view field,
                            std::string_view what) const {
  const auto mark = at.Mark();
  const auto where = mark.is_null() ? std::string{} : cat(":", mark.line + 1, ":", mark.column + 1);
  return cat(file_, where, ": ", field, field.empty() ? "" : ": ", what);
}

std::vector<std::string> Findings::take_problems() {
  return sorted(std::move(problems_));
}

std::vector<std::string> Findings::sorted(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const auto& a, const auto& b) {
    return std::pair{a.line, a.column} < std::pair{b.line, b.column};
  });
  std::vector<std::string> out;
  for (auto& finding : findings) out.push_back(std::move(finding.text));
  return out;
}

Scalar scalar_kind(const YAML::Node& node) {
  if (node.IsNull()) return Scalar::kNull;
  // yaml-cpp: "?" is a plain scalar, "!" a quoted one.
  if (node.Tag() != "?" && !node.Tag().empty()) return Scalar::kString;
  const auto& text = node.Scalar();
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return Scalar::kNull;
  if (one_of(kTrue, text) || one_of(kFalse, text)) return Scalar::kBool;
  return number_kind(text);
}

std::optional<std::string> as_string(Findings& findings, const Field& field) {
  if (field.node.IsScalar() && scalar_kind(field.node) == Scalar::kString)
    return field.node.Scalar();
  const bool scalar = field.node.IsScalar();
  mismatch(findings, field,
           scalar ? cat("text (\"", field.node.Scalar(), "\" in quotes)") : std::string{"text"});
  return std::nullopt;
}

std::optional<bool> as_bool(Findings& findings, const Field& field) {
  if (field.node.IsScalar() && scalar_kind(field.node) == Scalar::kBool)
    return one_of(kTrue, field.node.Scalar());
  mismatch(findings, field, "true or false");
  return std::nullopt;
}

std::optional<std::int64_t> as_int(Findings& findings, const Field& field, std::int64_t least,
                                   std::int64_t most) {
  if (!field.node.IsScalar() || scalar_kind(field.node) != Scalar::kInteger) {
    mismatch(findings, field, "a whole number");
    return std::nullopt;
  }
  std::string_view text = field.node.Scalar();
  if (text.starts_with('+')) text.remove_prefix(1);
  // YAML 1.1 reads 0644 in eights, 1.2 in tens.
  if (text.size() > 1 && text[0] == '0') {
    findings.problem(field.node, field.name, "a number that begins with 0 can be read in two ways");
    return std::nullopt;
  }
  const auto value = parse_int<std::int64_t>(text);
  if (!value || *value < least || *value > most) {
    findings.problem(field.node, field.name, cat("must be from ", least, " to ", most));
    return std::nullopt;
  }
  return value;
}

std::optional<Quantity> as_quantity(Findings& findings, const Field& field) {
  if (!field.node.IsScalar() || scalar_kind(field.node) == Scalar::kBool) {
    mismatch(findings, field, "a quantity");
    return std::nullopt;
  }
  auto parsed = parse_quantity(field.node.Scalar());
  if (parsed.ok()) return parsed.value();
  findings.problem(field.node, field.name, parsed.error().message());
  return std::nullopt;
}

std::vector<Field> as_list(Findings& findings, const Field& field) {
  std::vector<Field> out;
  if (!field.node.IsSequence()) {
    mismatch(findings, field, "a list");
    return out;
  }
  for (const auto& item : field.node) out.push_back({item, cat(field.name, "[", out.size(), "]")});
  return out;
}

std::vector<std::string> as_strings(Findings& findings, const Field& field) {
  std::vector<std::string> out;
  for (const auto& item : as_list(findings, field)) {
    if (auto text = as_string(findings, item)) out.push_back(std::move(*text));
  }
  return out;
}

Object::Object(Findings& findings, const Field& field) : findings_{findings}, field_{field} {
  if (!field.node.IsMap()) {
    mismatch(findings, field, "an object");
    return;
  }
  std::set<std::string> seen;
  for (const auto& entry : field.node) {
    if (!entry.first.IsScalar()) {
      findings.problem(entry.first, field.name, "a key must be text");
      continue;
    }
    const auto& key = entry.first.Scalar();
    if (!seen.insert(key).second) {
      findings.problem(entry.first, name_of(key), "is there twice");
      continue;
    }
    members_.push_back({key, entry.first, entry.second});
  }
}

std::string Object::name_of(std::string_view key) const {
  return field_.name.empty() ? std::string{key} : cat(field_.name, ".", key);
}

std::optional<Field> Object::take(std::string_view key) {
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [&](const auto& m) { return m.key == key && !m.taken; });
  if (it == members_.end()) return std::nullopt;
  it->taken = true;
  if (it->value.IsNull() || (it->value.IsScalar() && scalar_kind(it->value) == Scalar::kNull))
    return std::nullopt;
  return Field{it->value, name_of(key)};
}

std::optional<Field> Object::require(std::string_view key) {
  auto field = take(key);
  if (!field && field_.node.IsMap()) findings_.problem(field_.node, name_of(key), "is missing");
  return field;
}

std::string Object::string(std::string_view key) {
  const auto field = take(key);
  return field ? as_string(findings_, *field).value_or("") : std::string{};
}

std::string Object::required_string(std::string_view key) {
  const auto field = require(key);
  if (!field) return {};
  auto text = as_string(findings_, *field);
  if (text && text->empty()) findings_.problem(field->node, field->name, "is empty");
  return std::move(text).value_or("");
}

std::optional<bool> Object::boolean(std::string_view key) {
  const auto field = take(key);
  return field ? as_bool(findings_, *field) : std::nullopt;
}

std::optional<std::int64_t> Object::integer(std::string_view key, std::int64_t least,
                                            std::int64_t most) {
  const auto field = take(key);
  return field ? as_int(findings_, *field, least, most) : std::nullopt;
}

std::vector<std::string> Object::strings(std::string_view key) {
  const auto field = take(key);
  return field ? as_strings(findings_, *field) : std::vector<std::string>{};
}

std::vector<Field> Object::list(std::string_view key) {
  const auto field = take(key);
  return field ? as_list(findings_, *field) : std::vector<Field>{};
}

std::optional<std::size_t> Object::word(std::string_view key,
                                        std::initializer_list<std::string_view> words) {
  const auto field = take(key);
  if (!field) return std::nullopt;
  const auto text = as_string(findings_, *field);
  if (!text) return std::nullopt;
  const auto it = std::find(words.begin(), words.end(), *text);
  if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
  std::vector<std::string> all;
  for (const auto word : words)
    if (!word.empty()) all.emplace_back(word);  // "" is the same as no word
  findings_.problem(field->node, field->name,
                    cat(in_quotes(*text), " is not one of ", join(all, ", ")));
  return std::nullopt;
}

void Object::ignore(std::string_view key) {
  static_cast<void>(take(key));
}

void Object::warn(std::string_view key, std::string_view why) {
  if (const auto field = take(key))
    findings_.warning(field->node, field->name, cat("is ignored: ", why));
}

void Object::refuse(std::string_view key, std::string_view why) {
  if (const auto field = take(key)) findings_.problem(field->node, field->name, why);
}

void Object::rest() {
  for (auto& member : members_) {
    if (!std::exchange(member.taken, true))
      findings_.problem(member.key_node, name_of(member.key), "no such field");
  }
}

std::vector<std::pair<std::string, Field>> Object::entries() {
  std::vector<std::pair<std::string, Field>> out;
  for (auto& member : members_) {
    if (!std::exchange(member.taken, true))
      out.emplace_back(member.key, Field{member.value, name_of(member.key)});
  }
  return out;
}

}  // namespace wherry::pod
