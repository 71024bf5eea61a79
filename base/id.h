// Random identifiers.
#pragma once
#include <cstddef>
#include <string>

namespace wherry {

std::string random_hex(std::size_t bytes);  // 2 characters a byte, from getrandom(2)

}  // namespace wherry
