// A JSON document as read from outside: a tree whose values know where they stand. Internal to
// oci/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace wherry::oci {

inline constexpr std::size_t kDeepest = 64;
inline constexpr std::size_t kLargest = std::size_t{16} << 20;    // bytes
inline constexpr std::size_t kMostValues = std::size_t{1} << 18;  // keeps the tree below 32 MiB

struct Node {
  enum class Type : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Type type = Type::kNull;
  bool boolean = false;
  std::uint32_t offset = 0;  // of the value's first byte
  std::string key;           // when the parent is an object
  std::string text;  // a string's value; a number as it was written, so that no range is lost
  std::vector<Node> children;  // elements of an array, members of an object, in their order
};
std::string_view to_string(Node::Type type);  // with its article: "a string", "an object"

struct Place {
  unsigned line = 0, column = 0;  // both from 1; the column counts bytes
};
Place place_of(std::string_view json, std::size_t offset);

// ".../<name>" as a JSON pointer (RFC 6901: '~' and '/' within the name are escaped).
void append_to_pointer(std::string& pointer, std::string_view name);
// As it is shown in a message: a key may hold anything, also line ends.
std::string shown_pointer(std::string_view pointer);
// The node under `root` that the pointer names, or the deepest one on the way to it.
const Node& find_node(const Node& root, std::string_view pointer);

// The whole document. Refused: more than kLargest bytes, kDeepest levels or kMostValues values, a
// key twice in an object, a byte sequence that is not UTF-8, half a surrogate pair, a NUL character
// in a string. The error reads "file:line:column: /json/pointer: what".
Result<Node> parse_tree(std::string_view json, std::string_view file_name);

}  // namespace wherry::oci
