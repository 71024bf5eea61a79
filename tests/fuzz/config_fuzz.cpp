// config.json and process.json: any bytes give a document or an error, and an accepted document is
// a fixed point of writing and reading.
#include "base/json.h"
#include "base/text.h"
#include "oci/config.h"
#include "tests/fuzz/target.h"

namespace {

using namespace wherry;

void check_error(const Error& error) {
  CHECK(error.code() == Code::kInvalid, "an input error");
  CHECK(error.message().starts_with("config.json:"), "the message says where");
  for (const auto line : split(error.message(), '\n')) {
    CHECK(!has_control(line), "the message can be printed");
    CHECK(valid_utf8(line), "the message is text");
  }
}

void config(std::string_view json) {
  auto first = oci::parse_config(json);
  if (!first.ok()) return check_error(first.error());
  CHECK(oci::validate(first->spec).empty(), "what was read keeps the rules");
  auto second = oci::parse_config(dump_json(oci::to_json(first->spec)));
  CHECK(second.ok(), "what was written can be read");
  CHECK(second->spec == first->spec, "nothing is lost");
}

void process(std::string_view json) {
  auto first = oci::parse_process(json, "config.json");
  if (!first.ok()) return check_error(first.error());
  auto second = oci::parse_process(dump_json(oci::to_json(first.value())));
  CHECK(second.ok(), "what was written can be read");
  CHECK(second.value() == first.value(), "nothing is lost");
}

}  // namespace

int fuzz_config(const std::uint8_t* data, std::size_t size) {
  const std::string_view json{reinterpret_cast<const char*>(data), size};
  config(json);
  process(json);
  return 0;
}
