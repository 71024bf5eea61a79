// Reading a YAML tree by fields: types are checked, every problem is collected with its place, and
// what nobody asked for is found. Only the manifest*.cpp files include this (and yaml-cpp with it).
#pragma once
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "runtime/pod/quantity.h"

namespace wherry::pod {

// Where problems and warnings go.
class Findings {
 public:
  explicit Findings(std::string_view file) : file_{file} {}
  void problem(const YAML::Node& at, std::string_view field, std::string_view what);
  void warning(const YAML::Node& at, std::string_view field, std::string_view what);
  bool any_problem() const { return !problems_.empty(); }
  std::vector<std::string> take_problems();  // in the order of the file
  std::vector<std::string> take_warnings() { return sorted(std::move(warnings_)); }

 private:
  struct Finding {
    int line, column;
    std::string text;
  };
  std::string place(const YAML::Node& at, std::string_view field, std::string_view what) const;
  static std::vector<std::string> sorted(std::vector<Finding> findings);
  std::string file_;
  std::vector<Finding> problems_, warnings_;
};

// A node and the name of its field: "spec.containers[0].image".
struct Field {
  const YAML::Node node;  // const: assigning a YAML::Node changes the tree that it is part of
  std::string name;
};

enum class Scalar : std::uint8_t { kString, kInteger, kFloat, kBool, kNull };
// What a plain scalar is by the rules of YAML as Kubernetes reads it (1.1: yes and no are
// booleans).
Scalar scalar_kind(const YAML::Node& node);

std::optional<std::string> as_string(Findings& findings, const Field& field);
std::optional<bool> as_bool(Findings& findings, const Field& field);
std::optional<std::int64_t> as_int(Findings& findings, const Field& field, std::int64_t least,
                                   std::int64_t most);
std::optional<Quantity> as_quantity(Findings& findings, const Field& field);
// The items of a list, or none with a problem when it is not one.
std::vector<Field> as_list(Findings& findings, const Field& field);
std::vector<std::string> as_strings(Findings& findings, const Field& field);

// One mapping. take() strikes a key off; a null is as good as absent. rest() says what to do with
// what is left.
class Object {
 public:
  Object(Findings& findings, const Field& field);

  std::optional<Field> take(std::string_view key);
  // As take(), and a problem when it is missing.
  std::optional<Field> require(std::string_view key);

  std::string string(std::string_view key);
  std::string required_string(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
  template <class T>
  std::optional<T> number(std::string_view key) {
    const auto value = integer(key, 0, std::numeric_limits<T>::max());
    return value ? std::optional<T>{static_cast<T>(*value)} : std::nullopt;
  }
  std::vector<std::string> strings(std::string_view key);
  std::vector<Field> list(std::string_view key);
  // One of `words`, given by its index.
  std::optional<std::size_t> word(std::string_view key,
                                  std::initializer_list<std::string_view> words);

  void ignore(std::string_view key);                      // of no meaning here
  void warn(std::string_view key, std::string_view why);  // "is ignored: why"
  void refuse(std::string_view key, std::string_view why);
  void rest();  // all that is left is unknown
  // Keys and values that are the user's own: labels, limits.
  std::vector<std::pair<std::string, Field>> entries();

  const Field& field() const { return field_; }
  Findings& findings() { return findings_; }
  void problem(std::string_view what) { findings_.problem(field_.node, field_.name, what); }

 private:
  struct Member {
    std::string key;
    const YAML::Node key_node, value;
    bool taken = false;
  };
  std::string name_of(std::string_view key) const;
  Findings& findings_;
  Field field_;
  std::vector<Member> members_;
};

}  // namespace wherry::pod
