#include "tests/support/tar_writer.h"

#include <cstdio>
#include <cstring>

namespace wherry::test {
namespace {

void put(std::string& block, std::size_t at, std::size_t size, const std::string& text) {
  block.replace(at, std::min(size, text.size()), text, 0, size);
}
std::string octal(unsigned long value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*lo", digits, value);
  return text;
}

}  // namespace

Tar& Tar::add(const TarHeader& header) {
  std::string block(512, '\0');
  put(block, 0, 100, header.name);
  put(block, 100, 7, octal(header.mode, 7));
  put(block, 108, 7, octal(header.uid, 7));
  put(block, 116, 7, octal(header.gid, 7));
  put(block, 124, 11,
      octal(header.size >= 0 ? static_cast<unsigned long>(header.size) : header.content.size(),
            11));
  put(block, 136, 11, octal(header.mtime, 11));
  block[156] = header.type;
  put(block, 157, 100, header.linkname);
  put(block, 257, 8, header.magic);
  put(block, 329, 7, octal(header.major, 7));
  put(block, 337, 7, octal(header.minor, 7));
  put(block, 345, 155, header.prefix);
  put(block, 148, 8, "        ");
  unsigned long sum = header.bad_checksum ? 1 : 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(block, 148, 8, octal(sum, 6) + std::string("\0 ", 2));
  bytes_ += block + header.content;
  bytes_.resize((bytes_.size() + 511) / 512 * 512);
  return *this;
}

Tar& Tar::file(const std::string& name, const std::string& content, unsigned long mode) {
  TarHeader header;
  header.name = name;
  header.content = content;
  header.mode = mode;
  return add(header);
}

Tar& Tar::dir(const std::string& name, unsigned long mode) {
  TarHeader header;
  header.name = name;
  header.type = '5';
  header.mode = mode;
  return add(header);
}

Tar& Tar::link(const std::string& name, const std::string& target) {
  TarHeader header;
  header.name = name;
  header.type = '2';
  header.linkname = target;
  header.mode = 0777;
  return add(header);
}

Tar& Tar::hardlink(const std::string& name, const std::string& target) {
  TarHeader header;
  header.name = name;
  header.type = '1';
  header.linkname = target;
  return add(header);
}

Tar& Tar::node(const std::string& name, char type, unsigned long major, unsigned long minor) {
  TarHeader header;
  header.name = name;
  header.type = type;
  header.major = major;
  header.minor = minor;
  return add(header);
}

Tar& Tar::pax(const std::map<std::string, std::string>& records) {
  std::string body;
  for (const auto& [key, value] : records) {
    std::size_t length = key.size() + value.size() + 4;
    while (std::to_string(length).size() + key.size() + value.size() + 3 != length) ++length;
    body += std::to_string(length) + " " + key + "=" + value + "\n";
  }
  return pax_raw(body);
}

Tar& Tar::pax_raw(const std::string& body, char type) {
  TarHeader header;
  header.name = "pax";
  header.type = type;
  header.content = body;
  return add(header);
}

Tar& Tar::gnu_long(char type, const std::string& text) {
  TarHeader header;
  header.name = "././@LongLink";
  header.type = type;
  header.content = text + std::string(1, '\0');
  header.magic = std::string("ustar  \0", 8);
  return add(header);
}

Tar& Tar::raw(const std::string& bytes) {
  bytes_ += bytes;
  return *this;
}

Tar& Tar::open_ended() {
  end_mark_ = false;
  return *this;
}

std::string Tar::bytes() const {
  return end_mark_ ? bytes_ + std::string(1024, '\0') : bytes_;
}

}  // namespace wherry::test
