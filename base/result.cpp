#include "base/result.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace wherry {
namespace {

constexpr std::array<std::string_view, 10> kCodeNames = {
    "system",      "invalid", "state", "not_found", "exists",
    "unsupported", "denied",  "busy",  "timeout",   "protocol"};

Code code_of(int err) {
  switch (err) {
    case ENOENT:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
      return Code::kExists;
    case EACCES:
    case EPERM:
      return Code::kDenied;
    case EBUSY:
      return Code::kBusy;
    case ETIMEDOUT:
      return Code::kTimeout;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::kUnsupported;
    default:
      return Code::kSystem;
  }
}

}  // namespace

std::string_view to_string(Code code) {
  return kCodeNames[static_cast<std::size_t>(code)];
}

Code code_from_string(std::string_view text) {
  for (std::size_t i = 0; i < kCodeNames.size(); ++i)
    if (kCodeNames[i] == text) return static_cast<Code>(i);
  return Code::kSystem;
}

Error Error::sys(std::string_view call, std::string_view subject, int err, Site site) {
  Body body;
  body.code = code_of(err);
  body.err = err;
  body.call = call;
  body.object = subject;
  body.site = site;
  body.message = subject.empty() ? cat(call, ": ", strerror(err))
                                 : cat(call, " '", subject, "': ", strerror(err));
  return Error{std::move(body)};
}

Error Error::make(Code code, std::string message, Site site) {
  Body body;
  body.code = code;
  body.message = std::move(message);
  body.site = site;
  return Error{std::move(body)};
}

Error Error::rebuilt(Code code, int err, std::string message) {
  Body body;
  body.code = code;
  body.err = err;
  body.message = std::move(message);
  return Error{std::move(body)};
}

Error&& Error::context(std::string_view outer) && {
  body_->message = cat(outer, ": ", body_->message);
  return std::move(*this);
}

Error&& Error::hint(std::string_view what_to_do) && {
  if (body_->hint.empty()) body_->hint = what_to_do;
  return std::move(*this);
}

Error&& Error::step(std::string_view name) && {
  if (body_->step.empty()) body_->step = name;
  return std::move(*this);
}

Error&& Error::code(Code code) && {
  body_->code = code;
  return std::move(*this);
}

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: a rule of the program is broken: %s (%s)\n", file, line, why,
               condition);
  std::abort();
}

}  // namespace wherry
