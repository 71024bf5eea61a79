// Fuzz targets. Each is a function of its own name, so that the unit tests can run several on their
// corpora; for the libFuzzer program the build defines that name as LLVMFuzzerTestOneInput.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
int fuzz_config(const std::uint8_t* data, std::size_t size);
int fuzz_image(const std::uint8_t* data, std::size_t size);
}
