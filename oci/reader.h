// From a tree to typed values, by the tables of oci/fields*.h. All that is wrong is collected, not
// only the first. Internal to oci/.
#pragma once
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "oci/node.h"

namespace wherry::oci {

struct Finding {
  std::string pointer;
  std::size_t offset = 0;
  std::string message;
};

// Some JSON readers match names without regard to case. Where two readers must see the same in a
// document (an image), a name that differs from a known one in nothing else is refused.
enum class Case : std::uint8_t { kNoted, kRefused };

struct Findings {
  std::vector<Finding> problems, notes;
  Case other_case = Case::kNoted;
};

// Where a value stands, without building the pointer before somebody asks for it.
struct Cursor {
  Findings* findings;
  const Node* node;
  const Cursor* parent = nullptr;
  std::size_t index = 0;  // in the parent, when that is an array

  std::string pointer() const;
  void problem(std::string message) const;
  void note(std::string message) const;
  bool is(Node::Type type,
          std::string_view wanted) const;  // or a problem: "must be a string, not a number"
  Cursor child(std::size_t i) const { return {findings, &node->children[i], this, i}; }
};

enum class Need : std::uint8_t { kOptional, kRequired };

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void bad_integer(const Cursor& at, std::string_view range);

void read(const Cursor& at, std::string& out);
void read(const Cursor& at, bool& out);

template <Integer T>
void read(const Cursor& at, T& out) {
  const auto value =
      at.node->type == Node::Type::kNumber ? parse_int<T>(at.node->text) : std::optional<T>{};
  if (value)
    out = *value;
  else
    bad_integer(at, cat(std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max()));
}

template <class T>
void read(const Cursor& at, std::optional<T>& out) {
  read(at, out.emplace());
}

template <class T>
void read(const Cursor& at, std::vector<T>& out) {
  if (!at.is(Node::Type::kArray, "an array")) return;
  for (std::size_t i = 0; i < at.node->children.size(); ++i) read(at.child(i), out.emplace_back());
}

template <class T>
void read(const Cursor& at, std::map<std::string, T>& out) {
  if (!at.is(Node::Type::kObject, "an object")) return;
  for (std::size_t i = 0; i < at.node->children.size(); ++i) {
    const auto child = at.child(i);
    read(child, out[child.node->key]);
  }
}

// The visitor that reads one object. What no field asked for is noted in the end.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(const Cursor& at) : at_{at} {}

  template <class T>
  void field(std::string_view name, T& out, Need need) {
    if (const auto* child = find(name, need)) read(at(child), out);
  }
  template <class T>
  void required(std::string_view name, T& out) {
    field(name, out, Need::kRequired);
  }
  template <class T>
  void optional(std::string_view name, T& out) {
    field(name, out, Need::kOptional);
  }
  template <class T>
  void always(std::string_view name, T& out) {
    field(name, out, Need::kOptional);
  }
  // A device number of a rule: -1 says the same as no number.
  template <class T>
  void wildcard(std::string_view name, std::optional<T>& out) {
    field(name, out, Need::kOptional);
    if (out == T{-1}) out.reset();
  }
  // An object whose members are kept in the structure around it.
  template <class Members>
  void group(std::string_view name, bool /*present*/, const Members& members) {
    const auto* child = find(name, Need::kOptional);
    if (!child) return;
    const auto cursor = at(child);
    if (!cursor.is(Node::Type::kObject, "an object")) return;
    Reader inner{cursor};
    members(inner);
    inner.finish();
  }
  // An object of objects, each with few members.
  template <class T, class Members>
  void each(std::string_view name, std::map<std::string, T>& out, const Members& members) {
    const auto* child = find(name, Need::kOptional);
    if (!child) return;
    const auto cursor = at(child);
    if (!cursor.is(Node::Type::kObject, "an object")) return;
    for (std::size_t i = 0; i < cursor.node->children.size(); ++i) {
      const auto entry = cursor.child(i);
      auto& value = out[entry.node->key];
      if (!entry.is(Node::Type::kObject, "an object")) continue;
      Reader inner{entry};
      members(inner, value);
      inner.finish();
    }
  }
  // The keys of an object whose values say nothing: "volumes": {"/data": {}}.
  void keys(std::string_view name, std::vector<std::string>& out);
  // A section for another platform: a document that has it and no `linux` is not meant for this
  // one.
  void foreign(std::string_view name, bool linux_too);
  void finish();

 private:
  // nullptr when it is absent, or null and optional (as encoders write an empty pointer or slice).
  const Node* find(std::string_view name, Need need);
  Cursor at(const Node* child) const { return {at_.findings, child, &at_, 0}; }

  const Cursor& at_;
  std::vector<std::string_view> asked_;
};

// Any structure with a `members` table.
template <class T>
requires requires(Reader& reader, T& out) {
  members(reader, out);
}
void read(const Cursor& at, T& out) {
  if (!at.is(Node::Type::kObject, "an object")) return;
  Reader reader{at};
  members(reader, out);
  reader.finish();
}

}  // namespace wherry::oci
