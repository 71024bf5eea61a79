// Result<T>, Error and TRY: how every fallible function in this project reports failure.
#pragma once
#include <cerrno>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace wherry {

// What a caller can act on. errno is kept beside it, never instead of it.
enum class Code : std::uint8_t {
  kSystem,       // a system call failed in a way nobody planned for
  kInvalid,      // the input is wrong; trying again will not help
  kState,        // the object is not in a state in which this can be done
  kNotFound,     // there is no such object
  kExists,       // there is one already
  kUnsupported,  // this kernel, host or build cannot do it
  kDenied,       // not permitted
  kBusy,         // somebody else holds it
  kTimeout,      // the deadline passed
  kProtocol,     // the peer broke the rules of the conversation
};
std::string_view to_string(Code code);         // "invalid", "not_found", ...
Code code_from_string(std::string_view text);  // kSystem for an unknown word

struct Site {
  const char* file;
  int line;
};

// A failure, outermost context first: "create container 'web': mount '/proc': openat2 'proc': Not a
// directory".
class [[nodiscard]] Error {
 public:
  // From the errno of the call just made: "openat2 'etc/passwd': Permission denied".
  static Error sys(std::string_view call, std::string_view subject = {}, int err = errno,
                   Site site = {__builtin_FILE(), __builtin_LINE()});
  static Error make(Code code, std::string message,
                    Site site = {__builtin_FILE(), __builtin_LINE()});
  // As it came over a wire or from another process.
  static Error rebuilt(Code code, int err, std::string message);

  Error&& context(std::string_view outer) &&;    // "outer: inner"
  Error&& hint(std::string_view what_to_do) &&;  // kept apart from the message; the innermost stays
  Error&& step(
      std::string_view name) &&;  // the step of a sequence that failed; the innermost stays
  Error&& code(Code code) &&;     // replaces the code derived from errno

  Code code() const { return body_->code; }
  int sys_errno() const { return body_->err; }  // 0 when no system call failed
  const std::string& message() const { return body_->message; }
  const std::string& syscall() const { return body_->call; }   // empty when none failed
  const std::string& object() const { return body_->object; }  // what the call was made on
  const std::string& step() const { return body_->step; }
  const std::string& hint() const { return body_->hint; }
  Site site() const { return body_->site; }

 private:
  struct Body {
    Code code = Code::kSystem;
    int err = 0;
    std::string message, call, object, step, hint;
    Site site{"", 0};
  };
  explicit Error(Body body) : body_{std::make_unique<Body>(std::move(body))} {}
  std::unique_ptr<Body> body_;
};

template <class T = void>
class [[nodiscard]] Result {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  Result() requires std::is_void_v<T> : state_{std::in_place_index<0>} {}
  template <class U = Value>
  requires(std::constructible_from<Value, U> && !std::same_as<std::remove_cvref_t<U>, Result> &&
           !std::same_as<std::remove_cvref_t<U>, Error>) Result(U&& value)
      : state_{std::in_place_index<0>, std::forward<U>(value)} {}
  Result(Error error) : state_{std::in_place_index<1>, std::move(error)} {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Value& value() & { return *std::get_if<0>(&state_); }
  const Value& value() const& { return *std::get_if<0>(&state_); }
  Value&& value() && { return std::move(*std::get_if<0>(&state_)); }
  Value& operator*() & { return value(); }
  Value* operator->() { return std::get_if<0>(&state_); }
  Error& error() & { return *std::get_if<1>(&state_); }
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }
  // A failure that is meant to have no consequence; the reason stands at the call.
  void ignore([[maybe_unused]] std::string_view why) const {}

 private:
  std::variant<Value, Error> state_;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace wherry

// Value of a Result, or return its Error from the enclosing function. The name inside is made
// unique, so that a TRY may stand within another under -Wshadow. Not as a later element of a braced
// list ({a, TRY(b)}): g++ 12 does not destroy the elements before it when it returns from there
// (tools/dev/lint looks for that).
#define WHERRY_CONCAT2(a, b) a##b
#define WHERRY_CONCAT(a, b) WHERRY_CONCAT2(a, b)
#define WHERRY_TRY_IMPL(name, expr, on_error) \
  __extension__({                             \
    auto&& name = (expr);                     \
    if (!name.ok()) [[unlikely]]              \
      return on_error;                        \
    std::move(name).value();                  \
  })
#define WHERRY_TRY(name, expr) WHERRY_TRY_IMPL(name, expr, std::move(name).error())
#define TRY(expr) WHERRY_TRY(WHERRY_CONCAT(wherry_try_, __COUNTER__), expr)
// The same, with the caller's context put in front of the message.
#define WHERRY_TRY_CTX(name, expr, text) \
  WHERRY_TRY_IMPL(name, expr, std::move(name).error().context(text))
#define TRY_CTX(expr, text) WHERRY_TRY_CTX(WHERRY_CONCAT(wherry_try_, __COUNTER__), expr, text)
// A programming mistake, never a matter of input. Always on.
#define CHECK(cond, why) \
  ((cond) ? static_cast<void>(0) : ::wherry::check_failed(__FILE__, __LINE__, #cond, why))
