// "Did you mean ...?"
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace wherry::cli {

// The one of `verbs` ("run", "image ls") that was meant by `word`: what other container tools call
// so, else what differs least. Within `group` ("image") when that is not empty. "" when none is
// near.
std::string nearest_verb(const std::vector<std::string_view>& verbs, const std::string& group,
                         const std::string& word);

}  // namespace wherry::cli
