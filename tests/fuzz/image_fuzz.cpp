// Manifest, index and image config: one document is at most one of the three, and what is accepted
// is a fixed point.
#include "base/json.h"
#include "oci/image.h"
#include "tests/fuzz/target.h"

namespace {

using namespace wherry;

template <class T>
bool accepted(Result<T> (*parse)(std::string_view), std::string_view json) {
  auto first = parse(json);
  if (!first.ok()) return false;
  auto second = parse(dump_json(oci::to_json(first.value())));
  CHECK(second.ok(), "what was written can be read");
  CHECK(second.value() == first.value(), "nothing is lost");
  return true;
}

}  // namespace

int fuzz_image(const std::uint8_t* data, std::size_t size) {
  const std::string_view json{reinterpret_cast<const char*>(data), size};
  const int kinds =
      (accepted(oci::parse_manifest, json) ? 1 : 0) + (accepted(oci::parse_index, json) ? 1 : 0);
  CHECK(kinds < 2, "no document is a manifest and an index");
  accepted(oci::parse_image_config, json);
  return 0;
}
