// Kubernetes' quantities: "100m", "0.5", "1Gi", "128M", "1e3".
#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace wherry::pod {

// Never negative. Parts below a thousand-millionth are rounded up, as everything is that is rounded
// here.
struct Quantity {
  std::uint64_t whole = 0;
  std::uint32_t nano = 0;

  std::uint64_t units() const;  // rounded up; saturates
  std::uint64_t milli() const;  // thousandths, rounded up; saturates
};
Result<Quantity> parse_quantity(std::string_view text);
// How many times `divisor` goes into it, rounded up (downward API); a divisor of 0 counts as 1.
std::uint64_t divide_up(const Quantity& quantity, const Quantity& divisor);

}  // namespace wherry::pod
