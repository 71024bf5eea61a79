#include "oci/node.h"

#include <algorithm>

#include "base/text.h"

namespace wherry::oci {

std::string_view to_string(Node::Type type) {
  switch (type) {
    case Node::Type::kNull:
      return "null";
    case Node::Type::kBool:
      return "a boolean";
    case Node::Type::kNumber:
      return "a number";
    case Node::Type::kString:
      return "a string";
    case Node::Type::kArray:
      return "an array";
    case Node::Type::kObject:
      return "an object";
  }
  return "?";
}

Place place_of(std::string_view json, std::size_t offset) {
  const auto before = json.substr(0, std::min(offset, json.size()));
  const auto last = before.rfind('\n');
  const auto start = last == std::string_view::npos ? 0 : last + 1;
  return {static_cast<unsigned>(std::count(before.begin(), before.end(), '\n') + 1),
          static_cast<unsigned>(before.size() - start + 1)};
}

void append_to_pointer(std::string& pointer, std::string_view name) {
  pointer.push_back('/');
  for (const char c : name) {
    if (c == '~')
      pointer += "~0";
    else if (c == '/')
      pointer += "~1";
    else
      pointer.push_back(c);
  }
}

std::string shown_pointer(std::string_view pointer) {
  const auto quoted = in_quotes(pointer);
  return quoted.substr(1, quoted.size() - 2);
}

namespace {

std::string unescape(std::string_view step) {
  std::string out;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '~' && i + 1 < step.size())
      out.push_back(step[++i] == '1' ? '/' : '~');
    else
      out.push_back(step[i]);
  }
  return out;
}

const Node* child_of(const Node& node, std::string_view step) {
  if (node.type == Node::Type::kArray) {
    const auto index = parse_int<std::size_t>(step);
    return index && *index < node.children.size() ? &node.children[*index] : nullptr;
  }
  const auto name = unescape(step);
  const auto found = std::find_if(node.children.begin(), node.children.end(),
                                  [&](const Node& child) { return child.key == name; });
  return found == node.children.end() ? nullptr : &*found;
}

}  // namespace

const Node& find_node(const Node& root, std::string_view pointer) {
  const Node* node = &root;
  for (const auto step : split(pointer.substr(std::min<std::size_t>(1, pointer.size())), '/')) {
    const auto* child = child_of(*node, step);
    if (!child) break;
    node = child;
  }
  return *node;
}

}  // namespace wherry::oci
