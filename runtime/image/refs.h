// Names of images: their grammar, and the files that hold them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/image/content.h"

namespace wherry::image {

// A name as someone writes it. `tag` and `digest` are empty when not given.
struct Reference {
  std::string name, tag, digest;
};
Result<Reference> parse_reference(std::string_view text);
// As normalise_reference(), with the registry that a name without one belongs to.
Result<std::string> full_reference(std::string_view text, std::string_view default_registry);
// Whether `stored` (a full name) is what someone who writes `asked` can mean.
bool matches(std::string_view stored, const Reference& asked);

// Every name and its manifest's digest.
Result<std::map<std::string, oci::Digest>> read_refs(const Content& content);
Result<> write_ref(const Content& content, const std::string& name, const oci::Digest& digest);
Result<> remove_ref(const Content& content, const std::string& name);

}  // namespace wherry::image
