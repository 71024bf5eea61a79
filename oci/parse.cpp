#include <yajl/yajl_parse.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "oci/node.h"

namespace wherry::oci {
namespace {

struct Fault {
  std::size_t offset;
  std::string what;
};

std::optional<unsigned> hex4(std::string_view json, std::size_t at) {
  if (at + 4 > json.size()) return std::nullopt;
  return parse_int<unsigned>(json.substr(at, 4), 16);
}

// What yajl lets through: it takes overlong UTF-8 forms, and turns half a surrogate pair into a
// question mark.
std::optional<Fault> check_text(std::string_view json) {
  if (json.size() > kLargest)
    return Fault{0, cat("is ", json.size(), " bytes long; at most ", kLargest, " are read")};
  if (json.starts_with("\xef\xbb\xbf"))
    return Fault{0, "begins with a byte order mark, which JSON does not allow"};
  if (const auto good = valid_utf8_prefix(json); good != json.size())
    return Fault{good, cat("byte 0x", hex(json.substr(good, 1)), " is not valid UTF-8 here")};
  for (auto at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at)) {
    const auto start = at;
    at += 2;
    if (start + 1 >= json.size() || json[start + 1] != 'u') continue;
    const auto unit = hex4(json, start + 2);
    if (!unit) continue;  // yajl says it better
    if (*unit == 0) return Fault{start, "a NUL character cannot be part of any value"};
    if (*unit < 0xd800 || *unit > 0xdfff) continue;
    const auto low = json.substr(std::min(start + 6, json.size()), 2) == "\\u"
                         ? hex4(json, start + 8)
                         : std::nullopt;
    if (*unit > 0xdbff || !low || *low < 0xdc00 || *low > 0xdfff)
      return Fault{start, "half of a surrogate pair is not a character"};
    at = start + 12;
  }
  return std::nullopt;
}

// Builds the tree from yajl's events. A child that is still open is the last of its parent's
// children, and no vector above it grows until it is closed: so the stack may hold plain pointers.
class Builder {
 public:
  Builder(std::string_view json, yajl_handle& parser) : json_{json}, parser_{parser} {}

  bool value(Node::Type type, std::string_view text = {}, bool boolean = false) {
    auto* node = add(type);
    if (!node) return false;
    node->text = text;
    node->boolean = boolean;
    return true;
  }
  bool open(Node::Type type) {
    auto* node = add(type);
    if (!node) return false;
    open_.push_back(node);
    if (open_.size() > kDeepest)
      return fail(node->offset, cat("is nested more than ", kDeepest, " levels deep"));
    return true;
  }
  bool key(std::string_view name) {
    advance();
    key_ = name;
    has_key_ = true;
    return true;
  }
  bool close() {
    const Node& node = *open_.back();
    if (const auto* twice = repeated_key(node)) {
      key_ = twice->key;
      has_key_ = true;
      return fail(twice->offset, "the same key stands twice in one object");
    }
    advance();
    open_.pop_back();
    return true;
  }

  // The first byte after what was read last that can begin a token.
  std::size_t next_token() const {
    return std::min(json_.find_first_not_of(" \t\r\n,:", read_), json_.size());
  }
  void stop_counting() { counting_ = false; }  // yajl_complete_parse() counts in a text of its own

  std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      append_step(out, *open_[i], open_[i + 1]->key);
    if (open_.empty()) return out;
    const Node& last = *open_.back();
    if (last.type == Node::Type::kArray)
      append_to_pointer(out, std::to_string(last.children.size()));
    else if (has_key_)
      append_to_pointer(out, key_);
    return out;
  }

  Node root;
  std::optional<Fault> fault;

 private:
  static void append_step(std::string& out, const Node& parent, std::string_view key) {
    append_to_pointer(out, parent.type == Node::Type::kArray
                               ? std::to_string(parent.children.size() - 1)
                               : std::string{key});
  }
  Node* add(Node::Type type) {
    const auto offset = next_token();
    advance();
    if (++count_ > kMostValues) {
      fail(offset, cat("the document holds more than ", kMostValues, " values"));
      return nullptr;
    }
    Node* node = open_.empty() ? &root : &open_.back()->children.emplace_back();
    node->type = type;
    node->offset = static_cast<std::uint32_t>(offset);
    node->key = std::exchange(key_, {});
    has_key_ = false;
    return node;
  }
  void advance() {
    if (counting_) read_ = yajl_get_bytes_consumed(parser_);
  }
  bool fail(std::size_t offset, std::string what) {
    fault = Fault{offset, std::move(what)};
    return false;
  }
  // Sorted, so that an object of many members costs no square of them.
  static const Node* repeated_key(const Node& node) {
    if (node.type != Node::Type::kObject || node.children.size() < 2) return nullptr;
    std::vector<const Node*> members(node.children.size());
    std::transform(node.children.begin(), node.children.end(), members.begin(),
                   [](const Node& child) { return &child; });
    std::stable_sort(members.begin(), members.end(),
                     [](const Node* a, const Node* b) { return a->key < b->key; });
    const auto found =
        std::adjacent_find(members.begin(), members.end(),
                           [](const Node* a, const Node* b) { return a->key == b->key; });
    return found == members.end() ? nullptr : *std::next(found);
  }

  std::string_view json_;
  yajl_handle& parser_;
  std::vector<Node*> open_;
  std::string key_;
  bool has_key_ = false, counting_ = true;
  std::size_t read_ = 0, count_ = 0;
};

Builder& self(void* context) {
  return *static_cast<Builder*>(context);
}
std::string_view view(const unsigned char* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

using Type = Node::Type;
const yajl_callbacks kCallbacks = {
    .yajl_null = [](void* c) noexcept -> int { return self(c).value(Type::kNull); },
    .yajl_boolean = [](void* c, int on) noexcept -> int {
      return self(c).value(Type::kBool, {}, on != 0);
    },
    .yajl_integer = nullptr,
    .yajl_double = nullptr,
    .yajl_number = [](void* c, const char* text, std::size_t size) noexcept -> int {
      return self(c).value(Type::kNumber, {text, size});
    },
    .yajl_string = [](void* c, const unsigned char* text, std::size_t size) noexcept -> int {
      return self(c).value(Type::kString, view(text, size));
    },
    .yajl_start_map = [](void* c) noexcept -> int { return self(c).open(Type::kObject); },
    .yajl_map_key = [](void* c, const unsigned char* text, std::size_t size) noexcept -> int {
      return self(c).key(view(text, size));
    },
    .yajl_end_map = [](void* c) noexcept -> int { return self(c).close(); },
    .yajl_start_array = [](void* c) noexcept -> int { return self(c).open(Type::kArray); },
    .yajl_end_array = [](void* c) noexcept -> int { return self(c).close(); },
};

// yajl's own words without its punctuation: "parse error: premature EOF\n".
std::string yajl_says(yajl_handle parser) {
  auto* text = yajl_get_error(parser, 0, nullptr, 0);
  std::string out{trim(reinterpret_cast<const char*>(text))};
  yajl_free_error(parser, text);
  while (out.ends_with('.')) out.pop_back();
  return out;
}

std::optional<Fault> run(yajl_handle parser, Builder& builder, std::string_view json) {
  auto status =
      yajl_parse(parser, reinterpret_cast<const unsigned char*>(json.data()), json.size());
  const auto consumed = yajl_get_bytes_consumed(parser);
  if (status == yajl_status_ok) {
    builder.stop_counting();
    status = yajl_complete_parse(parser);
  }
  if (status == yajl_status_ok) return std::nullopt;
  if (builder.fault) return builder.fault;
  const auto what = yajl_says(parser);
  if (what.find("premature EOF") != std::string::npos) return Fault{json.size(), what};
  // An error inside a string or a number has its place within the token; any other is about the
  // token as a whole.
  const bool within = what.starts_with("lexical") &&
                      what.find("in input text") == std::string::npos &&
                      what.find("invalid char in") == std::string::npos;
  return Fault{within ? consumed : builder.next_token(), what};
}

}  // namespace

Result<Node> parse_tree(std::string_view json, std::string_view file_name) {
  yajl_handle parser = nullptr;
  Builder builder{json, parser};
  const std::unique_ptr<yajl_handle, void (*)(yajl_handle*)> owner{&parser, [](yajl_handle* p) {
                                                                     if (*p) yajl_free(*p);
                                                                   }};
  auto fault = check_text(json);
  if (!fault) {
    parser = yajl_alloc(&kCallbacks, nullptr, &builder);
    CHECK(parser != nullptr, "out of memory");
    fault = run(parser, builder, json);
  }
  if (!fault) return std::move(builder.root);
  const auto [line, column] = place_of(json, fault->offset);
  auto pointer = shown_pointer(builder.pointer());
  if (!pointer.empty()) pointer += ": ";
  return Error::make(Code::kInvalid,
                     cat(file_name, ':', line, ':', column, ": ", pointer, fault->what));
}

}  // namespace wherry::oci
