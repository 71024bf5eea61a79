#include "shim/worker/cri_format.h"

namespace wherry::shim {

CriText format_cri(std::string_view raw, std::string_view stream, std::string_view time,
                   bool open_line, StreamEnd end) {
  CriText out;
  out.open_line = open_line;
  const auto put = [&](std::string_view tag, std::string_view text) {
    out.text.append(time).append(" ").append(stream).append(tag).append(text).append("\n");
    out.open_line = tag == " P ";
  };
  while (out.consumed < raw.size() || (end == StreamEnd::kEnded && out.open_line)) {
    const std::string_view rest = raw.substr(out.consumed);
    const auto line_end = rest.substr(0, kLongestLogPiece + 1).find('\n');
    if (line_end != std::string_view::npos) {
      put(" F ", rest.substr(0, line_end));
      out.consumed += line_end + 1;
    } else if (rest.size() > kLongestLogPiece) {
      put(" P ", rest.substr(0, kLongestLogPiece));
      out.consumed += kLongestLogPiece;
    } else if (end == StreamEnd::kEnded) {
      put(" F ", rest);
      out.consumed = raw.size();
    } else {
      break;
    }
  }
  return out;
}

}  // namespace wherry::shim
