#include "base/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"

namespace wherry {
namespace {

// Of "[json.exception.parse_error.101] parse error at line 1, column 6: syntax error while parsing
// array - unexpected end of input; expected ']'; last read: '[1'" the part that says what is wrong.
std::string in_plain_words(std::string_view what) {
  if (const auto end = what.find("] "); what.starts_with('[') && end != std::string_view::npos)
    what.remove_prefix(end + 2);
  if (const auto dash = what.find(" - "); what.starts_with("parse error") && dash != what.npos)
    what.remove_prefix(dash + 3);
  std::string_view expected;
  if (const auto at = what.find("; expected "); at != std::string_view::npos)
    expected = what.substr(at);
  if (const auto at = what.find("; last read"); at != std::string_view::npos)
    return cat(what.substr(0, at), expected);
  return std::string{what};
}

// Walks the text once before the tree is built: depth and duplicate keys are not nlohmann's
// business.
class Guard : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem = cat("the key ", in_quotes(name), " stands twice");
    return false;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position = at;
    problem = in_plain_words(error.what());
    return false;
  }
  std::string problem;
  std::size_t position = 0;

 private:
  bool enter() {
    constexpr std::size_t kDeepest = 64;
    keys_.emplace_back();
    if (keys_.size() <= kDeepest) return true;
    problem = cat("it is nested more than ", kDeepest, " deep");
    return false;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }
  std::vector<std::set<std::string>> keys_;
};

std::string line_and_column(std::string_view text, std::size_t position) {
  position = std::min(position, text.size() + 1);  // the end is a place, too
  const auto before = text.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto start = before.rfind('\n');
  return cat("line ", line, ", column ",
             position - (start == std::string_view::npos ? 0 : start + 1));
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  try {
    Guard guard;
    if (!Json::sax_parse(text.begin(), text.end(), &guard)) {
      const auto place =
          guard.position != 0 ? cat(" at ", line_and_column(text, guard.position)) : std::string{};
      return Error::make(Code::kInvalid, cat(what, place, ": ", guard.problem));
    }
    return Json::parse(text.begin(), text.end());
  } catch (const std::exception& error) {
    return Error::make(Code::kInvalid, cat(what, ": ", in_plain_words(error.what())));
  }
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string dump_json_pretty(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> json_string(const Json& object, const char* key) {
  if (const auto found = object.find(key); found != object.end() && found->is_string())
    return found->get<std::string>();
  return Error::make(Code::kInvalid, cat("'", key, "' is missing or not a string"));
}

Result<std::int64_t> json_int(const Json& object, const char* key) {
  if (const auto found = object.find(key); found != object.end() && found->is_number_integer())
    return found->get<std::int64_t>();
  return Error::make(Code::kInvalid, cat("'", key, "' is missing or not an integer"));
}

std::string json_string_or(const Json& object, const char* key, std::string fallback) {
  auto got = json_string(object, key);
  return got.ok() ? std::move(got).value() : std::move(fallback);
}

std::int64_t json_int_or(const Json& object, const char* key, std::int64_t fallback) {
  const auto got = json_int(object, key);
  return got.ok() ? got.value() : fallback;
}

bool json_bool_or(const Json& object, const char* key, bool fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

Json error_to_json(const Error& error) {
  Json out{{"code", to_string(error.code())}, {"message", error.message()}};
  if (!error.step().empty()) out["step"] = error.step();
  if (!error.syscall().empty()) out["syscall"] = error.syscall();
  if (!error.object().empty()) out["path"] = error.object();
  if (error.sys_errno() != 0) out["errno"] = error.sys_errno();
  if (!error.hint().empty()) out["hint"] = error.hint();
  return out;
}

Error error_from_json(const Json& value) {
  auto error = Error::rebuilt(code_from_string(json_string_or(value, "code", "")),
                              static_cast<int>(json_int_or(value, "errno", 0)),
                              json_string_or(value, "message", "unknown failure"));
  return std::move(error)
      .hint(json_string_or(value, "hint", ""))
      .step(json_string_or(value, "step", ""));
}

}  // namespace wherry
