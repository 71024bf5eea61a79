// From typed values to JSON, by the same tables of oci/fields*.h that read them. Internal to oci/.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "oci/reader.h"

namespace wherry::oci {

class Writer;
template <class T>
requires requires(Writer& writer, const T& value) {
  members(writer, value);
}
Json write(const T& value);

inline Json write(const std::string& value) {
  return value;
}
inline Json write(bool value) {
  return value;
}
template <Integer T>
Json write(T value) {
  return value;
}

template <class T>
Json write(const std::vector<T>& values) {
  auto out = Json::array();
  for (const auto& value : values) out.push_back(write(value));
  return out;
}

template <class T>
Json write(const std::map<std::string, T>& values) {
  auto out = Json::object();
  for (const auto& [key, value] : values) out[key] = write(value);
  return out;
}

// The visitor that writes one object; a value that says nothing is left out unless it is required.
class Writer {
 public:
  static constexpr bool kReads = false;

  template <class T>
  void required(std::string_view name, const T& value) {
    out_[std::string{name}] = write(value);
  }
  template <class T>
  void required(std::string_view name, const std::optional<T>& value) {
    if (value) required(name, *value);
  }
  template <class T>
  void optional(std::string_view name, const T& value) {
    if (value != T{}) required(name, value);
  }
  template <class T>
  void optional(std::string_view name, const std::optional<T>& value) {
    required(name, value);
  }
  template <class T>
  void always(std::string_view name, const T& value) {
    required(name, value);
  }
  template <class T>
  void field(std::string_view name, const T& value, Need need) {
    need == Need::kRequired ? required(name, value) : optional(name, value);
  }
  template <class T>
  void wildcard(std::string_view name, const std::optional<T>& value) {
    required(name, value);
  }
  template <class Members>
  void group(std::string_view name, bool present, const Members& members) {
    if (!present) return;
    Writer inner;
    members(inner);
    out_[std::string{name}] = std::move(inner.out_);
  }
  template <class T, class Members>
  void each(std::string_view name, const std::map<std::string, T>& values, const Members& members) {
    if (values.empty()) return;
    auto all = Json::object();
    for (const auto& [key, value] : values) {
      Writer inner;
      members(inner, value);
      all[key] = std::move(inner.out_);
    }
    out_[std::string{name}] = std::move(all);
  }
  void keys(std::string_view name, const std::vector<std::string>& values) {
    if (values.empty()) return;
    auto all = Json::object();
    for (const auto& key : values) all[key] = Json::object();
    out_[std::string{name}] = std::move(all);
  }
  void foreign(std::string_view /*name*/, bool /*linux_too*/) {}
  Json take() && { return std::move(out_); }

 private:
  Json out_ = Json::object();
};

template <class T>
requires requires(Writer& writer, const T& value) {
  members(writer, value);
}
Json write(const T& value) {
  Writer writer;
  members(writer, value);
  return std::move(writer).take();
}

}  // namespace wherry::oci
