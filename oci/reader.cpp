#include "oci/reader.h"

#include <algorithm>

namespace wherry::oci {
namespace {

constexpr std::size_t kMostFindings = 1000;

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string Cursor::pointer() const {
  if (!parent) return {};
  auto out = parent->pointer();
  append_to_pointer(out,
                    parent->node->type == Node::Type::kArray ? std::to_string(index) : node->key);
  return out;
}

void Cursor::problem(std::string message) const {
  if (findings->problems.size() < kMostFindings)
    findings->problems.push_back({pointer(), node->offset, std::move(message)});
}

void Cursor::note(std::string message) const {
  if (findings->notes.size() < kMostFindings)
    findings->notes.push_back({pointer(), node->offset, std::move(message)});
}

bool Cursor::is(Node::Type type, std::string_view wanted) const {
  if (node->type == type) return true;
  problem(cat("must be ", wanted, ", not ", to_string(node->type)));
  return false;
}

void read(const Cursor& at, std::string& out) {
  if (at.is(Node::Type::kString, "a string")) out = at.node->text;
}

void read(const Cursor& at, bool& out) {
  if (at.is(Node::Type::kBool, "true or false")) out = at.node->boolean;
}

void bad_integer(const Cursor& at, std::string_view range) {
  const auto wanted = cat("an integer of ", range);
  if (!at.is(Node::Type::kNumber, wanted)) return;
  const auto& text = at.node->text;
  const auto shown = text.size() > 40 ? cat(text.substr(0, 40), "...") : text;
  if (text.find_first_of(".eE") != std::string::npos)
    at.problem(cat("must be ", wanted, " written without fraction and exponent, not ", shown));
  else
    at.problem(cat("must be ", wanted, ", not ", shown));
}

void Reader::foreign(std::string_view name, bool linux_too) {
  const auto* section = find(name, Need::kOptional);
  if (!section) return;
  if (linux_too)
    at(section).note("section for another platform is ignored");
  else
    at(section).problem(cat("the document is meant for ", name, ": there is no 'linux' section"));
}

const Node* Reader::find(std::string_view name, Need need) {
  asked_.push_back(name);
  const auto& children = at_.node->children;
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const Node& child) { return child.key == name; });
  const bool present = found != children.end();
  if (present && (found->type != Node::Type::kNull || need == Need::kRequired)) return &*found;
  if (!present && need == Need::kRequired) {
    auto pointer = at_.pointer();
    append_to_pointer(pointer, name);
    at_.findings->problems.push_back(
        {std::move(pointer), at_.node->offset, "is missing but required"});
  }
  return nullptr;
}

void Reader::keys(std::string_view name, std::vector<std::string>& out) {
  const auto* child = find(name, Need::kOptional);
  if (!child) return;
  const auto cursor = at(child);
  if (!cursor.is(Node::Type::kObject, "an object")) return;
  for (std::size_t i = 0; i < child->children.size(); ++i) {
    const auto entry = cursor.child(i);
    if (entry.node->type != Node::Type::kNull) entry.is(Node::Type::kObject, "an object");
    out.push_back(entry.node->key);
  }
}

void Reader::finish() {
  for (const auto& child : at_.node->children) {
    if (std::find(asked_.begin(), asked_.end(), child.key) != asked_.end()) continue;
    const auto near = std::find_if(asked_.begin(), asked_.end(), [&](std::string_view name) {
      return same_but_for_case(name, child.key);
    });
    if (near == asked_.end())
      at(&child).note("unknown member is ignored");
    else if (at_.findings->other_case == Case::kNoted)
      at(&child).note(
          cat("unknown member is ignored; the specification writes ", in_quotes(*near)));
    else
      at(&child).problem(cat("must be written ", in_quotes(*near), ", or some readers miss it"));
  }
}

}  // namespace wherry::oci
