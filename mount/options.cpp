#include "mount/options.h"

#include <linux/mount.h>
#include <sys/mount.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "base/text.h"

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000  // Linux 5.14
#endif

namespace wherry::mount {
namespace {

struct AttributeWord {
  std::string_view word;
  std::uint64_t set, clear;
};
// The access-time modes are one field (MOUNT_ATTR__ATIME), so setting one clears the others.
constexpr std::array kAttributeWords = {
    AttributeWord{"ro", MOUNT_ATTR_RDONLY, 0},
    AttributeWord{"rw", 0, MOUNT_ATTR_RDONLY},
    AttributeWord{"nosuid", MOUNT_ATTR_NOSUID, 0},
    AttributeWord{"suid", 0, MOUNT_ATTR_NOSUID},
    AttributeWord{"nodev", MOUNT_ATTR_NODEV, 0},
    AttributeWord{"dev", 0, MOUNT_ATTR_NODEV},
    AttributeWord{"noexec", MOUNT_ATTR_NOEXEC, 0},
    AttributeWord{"exec", 0, MOUNT_ATTR_NOEXEC},
    AttributeWord{"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0},
    AttributeWord{"symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW},
    AttributeWord{"nodiratime", MOUNT_ATTR_NODIRATIME, 0},
    AttributeWord{"diratime", 0, MOUNT_ATTR_NODIRATIME},
    AttributeWord{"noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME},
    AttributeWord{"atime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    AttributeWord{"relatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
    AttributeWord{"norelatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
    AttributeWord{"strictatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
    AttributeWord{"nostrictatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
};

struct PropagationWord {
  std::string_view word;
  unsigned long flag;
};
constexpr std::array kPropagationWords = {
    PropagationWord{"shared", MS_SHARED}, PropagationWord{"slave", MS_SLAVE},
    PropagationWord{"private", MS_PRIVATE}, PropagationWord{"unbindable", MS_UNBINDABLE}};

const AttributeWord* attribute_word(std::string_view word) {
  const auto* found = std::find_if(kAttributeWords.begin(), kAttributeWords.end(),
                                   [&](const auto& a) { return a.word == word; });
  return found == kAttributeWords.end() ? nullptr : found;
}

// A later word overrides an earlier one: its bits leave the other set first.
void merge(Attributes& into, const AttributeWord& word) {
  into.clear |= word.clear;
  into.set &= ~word.clear;
  into.set |= word.set;
  if ((word.clear & MOUNT_ATTR__ATIME) == 0) into.clear &= ~word.set;
}

bool take_plain_word(Options& options, std::string_view word) {
  if (word == "bind" || word == "rbind") {
    options.bind = true;
    options.recursive = options.recursive || word == "rbind";
  } else if (word == "tmpcopyup") {
    options.copy_up = true;
  } else if (word == "idmap" || word == "ridmap") {
    options.idmap = true;
    options.idmap_recursive = word == "ridmap";
  } else if (word != "defaults" && word != "remount" && word != "auto" && word != "noauto") {
    return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> option_words() {
  std::vector<std::string> words{"bind", "rbind", "defaults"};
  for (const auto& known : kAttributeWords) {
    words.emplace_back(known.word);
    words.push_back(cat("r", known.word));
  }
  for (const auto& known : kPropagationWords) {
    words.emplace_back(known.word);
    words.push_back(cat("r", known.word));
  }
  std::sort(words.begin(), words.end());
  return words;
}

Result<std::pair<unsigned long, bool>> parse_propagation(const std::string& text) {
  std::string_view word = text;
  const bool recursive = word.starts_with('r');
  if (recursive) word.remove_prefix(1);
  for (const auto& known : kPropagationWords)
    if (known.word == word) return std::pair{known.flag, recursive};
  return Error::make(
      Code::kInvalid,
      cat("'", text,
          "' is not a propagation: shared, slave, private or unbindable, with or without r"));
}

Result<Options> parse_options(const oci::Mount& mount) {
  Options options;
  options.bind = mount.type == "bind" || mount.type == "rbind";
  options.recursive = mount.type == "rbind";
  for (const auto& word : mount.options) {
    if (take_plain_word(options, word)) continue;
    if (const auto* known = attribute_word(word)) {
      merge(options.attributes, *known);
      continue;
    }
    if (auto propagation = parse_propagation(word); propagation.ok()) {
      std::tie(options.propagation, options.propagation_recursive) = propagation.value();
      continue;
    }
    if (word.starts_with('r')) {
      if (const auto* known = attribute_word(std::string_view{word}.substr(1))) {
        merge(options.tree_attributes, *known);
        continue;
      }
    }
    const auto equals = word.find('=');
    options.data.emplace_back(word.substr(0, equals),
                              equals == std::string::npos ? "" : word.substr(equals + 1));
  }
  if (options.bind && !options.data.empty())
    return Error::make(
        Code::kInvalid,
        cat("option '", options.data.front().first, "' of mount '", mount.destination,
            "' is not for a bind mount: the kernel would not apply it"));
  return options;
}

}  // namespace wherry::mount
