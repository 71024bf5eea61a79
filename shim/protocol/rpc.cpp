#include "shim/protocol/rpc.h"

#include "base/json.h"
#include "base/text.h"

namespace wherry::shim {
namespace {

// The numbers of the JSON-RPC 2.0 specification, section 5.1; what happened really is in `data`.
int rpc_code(const Error& error) {
  switch (error.code()) {
    case Code::kInvalid:
      return -32602;
    case Code::kUnsupported:
      return -32601;
    case Code::kProtocol:
      return -32600;
    default:
      return -32000;
  }
}

}  // namespace

Result<Request> parse_request(std::string_view line) {
  const Json message = TRY(parse_json(line, "request"));
  const auto wrong = [](std::string_view what) {
    return Error::make(Code::kProtocol, cat("request: ", what));
  };
  if (!message.is_object()) return wrong("not an object");
  if (json_string_or(message, "jsonrpc", "") != "2.0") return wrong("'jsonrpc' must be \"2.0\"");
  Request request;
  if (const auto id = message.find("id"); id != message.end()) {
    if (!id->is_string() && !id->is_number_integer() && !id->is_null())
      return wrong("'id' must be a string or an integer");
    request.id = *id;
  }
  auto method = json_string(message, "method");
  if (!method.ok()) return wrong("'method' is missing or not a string");
  request.method = std::move(method).value();
  if (const auto params = message.find("params"); params != message.end()) {
    if (!params->is_object()) return wrong("'params' must be an object");
    request.params = *params;
  }
  return request;
}

std::string request_line(std::uint64_t id, std::string_view method, const Json& params) {
  return dump_json(Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}) +
         "\n";
}

std::string result_line(const Json& id, const Json& result) {
  return dump_json(Json{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}) + "\n";
}

std::string error_line(const Json& id, const Error& error) {
  const Json body{
      {"code", rpc_code(error)}, {"message", error.message()}, {"data", error_to_json(error)}};
  return dump_json(Json{{"jsonrpc", "2.0"}, {"id", id}, {"error", body}}) + "\n";
}

Result<Json> parse_reply(std::string_view line, std::uint64_t id) {
  Json message = TRY(parse_json(line, "reply"));
  if (!message.is_object()) return Error::make(Code::kProtocol, "reply: not an object");
  if (const auto error = message.find("error"); error != message.end() && error->is_object()) {
    if (const auto data = error->find("data"); data != error->end() && data->is_object())
      return error_from_json(*data);
    return Error::make(Code::kProtocol, json_string_or(*error, "message", "the shim refused"));
  }
  if (json_int_or(message, "id", -1) != static_cast<std::int64_t>(id))
    return Error::make(Code::kProtocol, "reply: to another request");
  if (const auto result = message.find("result"); result != message.end()) return *result;
  return Error::make(Code::kProtocol, "reply: neither result nor error");
}

Result<> LineBuffer::add(std::string_view bytes) {
  bytes_.append(bytes);
  if (bytes_.size() > kLongestLine && bytes_.find('\n') == std::string::npos)
    return Error::make(Code::kProtocol, cat("a message is longer than ", kLongestLine, " bytes"));
  return {};
}

std::optional<std::string> LineBuffer::next() {
  const auto end = bytes_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = bytes_.size();
    return std::nullopt;
  }
  std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  scanned_ = 0;
  return line;
}

}  // namespace wherry::shim
