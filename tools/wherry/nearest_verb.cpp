#include "tools/wherry/nearest_verb.h"

#include <algorithm>
#include <utility>

namespace wherry::cli {
namespace {

// What other container tools call it.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"images", "image ls"},
                                                                         {"rmi", "image rm"},
                                                                         {"load", "image import"},
                                                                         {"pull", "image import"},
                                                                         {"create", "run"},
                                                                         {"import", "image import"},
                                                                         {"start", "run"},
                                                                         {"apply", "pod run"},
                                                                         {"play", "pod run"},
                                                                         {"delete", "rm"},
                                                                         {"remove", "rm"},
                                                                         {"down", "rm"},
                                                                         {"list", "ps"},
                                                                         {"list", "ls"},
                                                                         {"ls", "ps"},
                                                                         {"get", "ps"},
                                                                         {"log", "logs"},
                                                                         {"describe", "inspect"},
                                                                         {"status", "ps"},
                                                                         {"shims", "shim ls"},
                                                                         {"pods", "ps"},
                                                                         {"check", "pod check"},
                                                                         {"validate", "pod check"},
                                                                         {"add", "import"}};

// Letters to add, take away or change to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_verb(const std::vector<std::string_view>& verbs, const std::string& group,
                         const std::string& word) {
  std::string_view wanted = word;
  for (auto [other, ours] : kOtherNames) {
    if (other != word) continue;
    if (!group.empty() && ours.starts_with(group + " ")) ours.remove_prefix(group.size() + 1);
    const bool is_whole = group.empty() ? ours != "ls" : ours.find(' ') == ours.npos;
    if (is_whole) wanted = ours;
  }
  std::string best;
  std::size_t least = 3;  // more letters than that are another word
  for (const auto verb : verbs) {
    auto name = verb;
    if (!group.empty()) {
      if (!name.starts_with(group + " ")) continue;
      name.remove_prefix(group.size() + 1);
    }
    const auto letters = distance(wanted, name);
    if (letters < std::min(least, name.size())) {
      least = letters;
      best = verb;
    }
  }
  return best;
}

}  // namespace wherry::cli
