// The log format of the CRI (kubernetes/design-proposals, "CRI: log management"): "<time> <stream>
// <tag> <text>\n", where tag F ends a line of the container's and P says that it goes on in the
// next one of the same stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::shim {

inline constexpr std::size_t kLongestLogPiece = 16 * 1024;  // bytes of text

enum class StreamEnd : std::uint8_t { kOpen, kEnded };

struct CriText {
  std::string text;          // whole log lines
  std::size_t consumed = 0;  // of `raw`; the rest is a line that has not ended yet
  bool open_line = false;    // the last piece was a P
};
// `open_line` is that of the text before. At the end of a stream a line without its end is ended:
// no P is ever the last.
CriText format_cri(std::string_view raw, std::string_view stream, std::string_view time,
                   bool open_line, StreamEnd end);

}  // namespace wherry::shim
