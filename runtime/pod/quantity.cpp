#include "runtime/pod/quantity.h"

#include <array>
#include <optional>

#include "base/text.h"

namespace wherry::pod {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr std::uint32_t kNano = 1'000'000'000;
constexpr int kMaxExponent = 30;
constexpr std::size_t kMaxDigits = 30;

struct Suffix {
  std::string_view text;
  unsigned binary = 0;  // power of 2
  int decimal = 0;      // power of 10
};
constexpr std::array kSuffixes{
    Suffix{"", 0, 0},    Suffix{"n", 0, -9},  Suffix{"u", 0, -6},  Suffix{"m", 0, -3},
    Suffix{"k", 0, 3},   Suffix{"M", 0, 6},   Suffix{"G", 0, 9},   Suffix{"T", 0, 12},
    Suffix{"P", 0, 15},  Suffix{"E", 0, 18},  Suffix{"Ki", 10, 0}, Suffix{"Mi", 20, 0},
    Suffix{"Gi", 30, 0}, Suffix{"Ti", 40, 0}, Suffix{"Pi", 50, 0}, Suffix{"Ei", 60, 0}};

std::optional<Suffix> suffix_of(std::string_view text) {
  for (const auto& suffix : kSuffixes) {
    if (suffix.text == text) return suffix;
  }
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const auto exponent = parse_int<int>(text);
  if (!exponent || *exponent > kMaxExponent || *exponent < -kMaxExponent) return std::nullopt;
  return Suffix{text, 0, *exponent};
}

bool multiply(Wide& value, Wide by) {
  return !__builtin_mul_overflow(value, by, &value);
}

bool scale(Wide& value, int power_of_ten) {
  for (; power_of_ten > 0; --power_of_ten) {
    if (!multiply(value, 10)) return false;
  }
  for (; power_of_ten < 0; ++power_of_ten) value = value / 10 + (value % 10 != 0 ? 1 : 0);
  return true;
}

Wide wide(const Quantity& quantity) {
  return Wide{quantity.whole} * kNano + quantity.nano;
}

std::uint64_t saturated(Wide value) {
  return value > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(value);
}

}  // namespace

std::uint64_t Quantity::units() const {
  return saturated((wide(*this) + kNano - 1) / kNano);
}

std::uint64_t Quantity::milli() const {
  constexpr Wide kStep = kNano / 1000;
  return saturated((wide(*this) + kStep - 1) / kStep);
}

std::uint64_t divide_up(const Quantity& quantity, const Quantity& divisor) {
  const Wide by = wide(divisor) == 0 ? Wide{kNano} : wide(divisor);
  return saturated((wide(quantity) + by - 1) / by);
}

Result<Quantity> parse_quantity(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return Error::make(Code::kInvalid, cat(in_quotes(text), " ", why));
  };
  std::string_view rest = text;
  if (rest.starts_with('-')) return wrong("is negative");
  if (rest.starts_with('+')) rest.remove_prefix(1);
  Wide value = 0;
  std::size_t digits = 0, decimals = 0;
  bool point = false;
  for (; !rest.empty(); rest.remove_prefix(1)) {
    const char c = rest[0];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    if (++digits > kMaxDigits) return wrong("has too many digits");
    value = value * 10 + static_cast<Wide>(c - '0');
    if (point) ++decimals;
  }
  const auto suffix = digits == 0 ? std::nullopt : suffix_of(rest);
  if (!suffix) return wrong("is not a quantity");
  // Up first, down last: nothing is rounded that need not be.
  const int down = static_cast<int>(decimals);
  const int power = suffix->decimal + 9 - down;
  bool fits = multiply(value, Wide{1} << suffix->binary);
  fits = fits && scale(value, power);
  if (!fits || value / kNano > UINT64_MAX) return wrong("is too large");
  return Quantity{static_cast<std::uint64_t>(value / kNano),
                  static_cast<std::uint32_t>(value % kNano)};
}

}  // namespace wherry::pod
