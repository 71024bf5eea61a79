#include "tools/wherry/parser.h"

#include <CLI/App.hpp>
#include <algorithm>

#include "base/text.h"

namespace wherry::cli {
namespace {

// "-f FILE" for "--file", whose help begins with "FILE: "; an operand's own name as it is.
std::string shown(const CLI::App& app, const std::string& name) {
  const auto* option = app.get_option_no_throw(name);
  if (option == nullptr || option->get_positional()) return name;
  const auto& help = option->get_description();
  const auto flag = option->get_snames().empty() ? name : cat("-", option->get_snames().front());
  const auto end = help.find_first_of(": ");
  const auto value = help.substr(0, end);
  const bool is_word = !value.empty() && std::all_of(value.begin(), value.end(),
                                                     [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_word ? cat(flag, " ", value) : flag;
}

// What of `words` no flag and no operand of the verb is: a flag first, since what follows it may
// have been its value.
std::optional<std::string> not_understood(const Words& extras) {
  const auto flag = std::find_if(extras.begin(), extras.end(), [](const auto& word) {
    return word.size() > 1 && word[0] == '-' && word != "--";
  });
  if (flag != extras.end()) return cat(in_quotes(*flag), " is not known here");
  for (const auto& word : extras)
    if (word != "--") return cat(in_quotes(word), " is one operand too many");
  return std::nullopt;
}

// CLI11's findings in the words of this program.
std::string finding(const CLI::App& app, const CLI::Error& error) {
  const std::string_view text = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const auto cut = text.rfind(": "), equals = text.find(" = "), colon = text.find(": ");
  if (kind == CLI::ExitCodes::ConversionError && cut != text.npos && equals != text.npos) {
    const auto value = text.substr(equals + 3);
    return cat(text.substr(cut + 2, equals - cut - 2), ": ", in_quotes(value),
               parse_int<std::int64_t>(value).value_or(0) < 0 ? " must not be negative"
                                                              : " is not a number");
  }
  if (kind == CLI::ExitCodes::ArgumentMismatch && colon != text.npos && text.front() != '-')
    return cat("more than one ", shown(app, std::string{text.substr(0, colon)}), " is given");
  if (kind == CLI::ExitCodes::ArgumentMismatch && colon != text.npos)
    return cat(text.substr(0, colon), text.find("At Most") != text.npos
                                          ? ": it is given more than once"
                                          : ": a value is missing");
  if (const auto end = text.find(" is required");
      kind == CLI::ExitCodes::RequiredError && end != text.npos)
    return cat(shown(app, std::string{text.substr(0, end)}), " is required");
  std::string message{text};
  if (!message.empty() && message[0] >= 'A' && message[0] <= 'Z')
    message[0] = static_cast<char>(message[0] | 0x20);
  return message;
}

}  // namespace

Split split_at_operand(const CLI::App& app, const Words& words) {
  const auto takes_value = [&](const std::string& name) {
    const auto* option = app.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_min() > 0;
  };
  std::size_t i = 0;
  while (i < words.size()) {
    const auto& word = words[i];
    if (word == "--") return {i, i + 1};
    if (word.size() < 2 || word[0] != '-') break;
    bool next = false;
    if (word[1] == '-') {
      next = word.find('=') == std::string::npos && takes_value(word);
    } else {
      // -it: the first letter that takes a value takes the rest of the word, or the next one.
      for (std::size_t at = 1; at < word.size(); ++at)
        if (takes_value(std::string{'-', word[at]})) {
          next = at + 1 == word.size();
          break;
        }
    }
    i += next ? 2 : 1;
  }
  i = std::min(i, words.size());
  return {i, i};
}

Result<std::optional<std::string>> parse(CLI::App& app, Words words, const std::string& verb,
                                         const std::string& usage) {
  const auto refuse = [&](const std::string& what) {
    return Error::make(Code::kInvalid, verb.empty() ? what : cat(verb, ": ", what))
        .hint(cat("usage: ", usage, "; ", app.get_name(), " --help tells more"));
  };
  app.allow_extras();  // CLI11 tells them backwards
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
    if (const auto extra = not_understood(app.remaining())) return refuse(*extra);
    return std::optional<std::string>{};
  } catch (const CLI::CallForHelp&) {
    return std::optional{app.help()};
  } catch (const CLI::Error& error) {
    // A flag that nobody knows is the likelier reason for an operand that is missing.
    if (const auto extra = not_understood(app.remaining())) return refuse(*extra);
    return refuse(finding(app, error));
  }
}

}  // namespace wherry::cli
