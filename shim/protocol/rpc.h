// JSON-RPC 2.0 as the shim speaks it: one message a line, requests of at most kLongestLine bytes,
// descriptors beside the first byte of a request. docs/shim-protocol.md has the methods.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace wherry::shim {

inline constexpr int kRpcVersion = 1;                         // told by `ping`
inline constexpr std::size_t kLongestLine = 4 * 1024 * 1024;  // an exec may carry much environment
inline constexpr std::size_t kMostRequestFds = 4;

struct Request {
  Json id;  // null: a notification; it is carried out and not answered
  std::string method;
  Json params = Json::object();
};
Result<Request> parse_request(
    std::string_view line);  // kInvalid: no JSON; kProtocol: not a request

std::string request_line(std::uint64_t id, std::string_view method, const Json& params);
std::string result_line(const Json& id, const Json& result);
std::string error_line(const Json& id, const Error& error);
// The `result` of a reply, or the Error that the other side had.
Result<Json> parse_reply(std::string_view line, std::uint64_t id);

// Bytes as they come -> lines. kProtocol when a line gets longer than kLongestLine.
class LineBuffer {
 public:
  Result<> add(std::string_view bytes);
  std::optional<std::string> next();  // without its line end
  bool empty() const { return bytes_.empty(); }

 private:
  std::string bytes_;
  std::size_t scanned_ = 0;
};

}  // namespace wherry::shim
