// Tar archives byte by byte, the malformed and the hostile ones too. Shares nothing with the
// project's own writer.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace wherry::test {

// Fields of one header block as text that goes into it unchecked; numbers are written in octal.
struct TarHeader {
  std::string name;
  char type = '0';
  std::string content;
  std::string linkname;
  unsigned long mode = 0644, uid = 0, gid = 0, mtime = 1000000000;
  long size = -1;  // -1: that of the content
  unsigned long major = 0, minor = 0;
  std::string prefix;
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
  bool bad_checksum = false;
};

class Tar {
 public:
  Tar& add(const TarHeader& header);
  Tar& file(const std::string& name, const std::string& content = "", unsigned long mode = 0644);
  Tar& dir(const std::string& name, unsigned long mode = 0755);
  Tar& link(const std::string& name, const std::string& target);  // symbolic
  Tar& hardlink(const std::string& name, const std::string& target);
  Tar& node(const std::string& name, char type, unsigned long major,
            unsigned long minor);                               // '3' c, '4' b, '6' fifo
  Tar& pax(const std::map<std::string, std::string>& records);  // for the next entry
  Tar& pax_raw(const std::string& body, char type = 'x');
  Tar& gnu_long(char type, const std::string& text);  // 'L' name or 'K' link of the next entry
  Tar& raw(const std::string& bytes);
  Tar& open_ended();  // without the end mark
  std::string bytes() const;

 private:
  std::string bytes_;
  bool end_mark_ = true;
};

}  // namespace wherry::test
