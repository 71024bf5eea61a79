// The text of /etc/hosts, /etc/hostname and /etc/resolv.conf of a pod.
#include <algorithm>

#include "base/text.h"
#include "runtime/pod/to_spec.h"

namespace wherry::pod {
namespace {

constexpr std::size_t kHostNameMax = 63;  // HOST_NAME_MAX is 64; a label of DNS has 63 (RFC 1035)

bool on_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address == "[::1]";
}

// The words of one line; comments begin with # or ;.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  line = line.substr(0, line.find_first_of("#;"));
  while (true) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return out;
    const auto end = line.find_first_of(" \t\r", begin);
    out.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return out;
    line.remove_prefix(end);
  }
}

}  // namespace

std::string hostname_of(const Pod& pod) {
  std::string name = pod.hostname.empty() ? pod.name : pod.hostname;
  if (name.size() > kHostNameMax) name.resize(kHostNameMax);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  return name.empty() ? pod.id.substr(0, 12) : name;
}

std::string hostname_file(const Pod& pod) {
  return hostname_of(pod) + "\n";
}

std::string hosts_file(const Pod& pod, const std::string& pod_ip) {
  std::string out =
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::0\tip6-localnet\n"
      "fe00::0\tip6-mcastprefix\n"
      "fe00::1\tip6-allnodes\n"
      "fe00::2\tip6-allrouters\n";
  out += cat(pod_ip.empty() ? "127.0.0.1" : pod_ip, "\t", hostname_of(pod), "\n");
  for (const auto& [ip, names] : pod.host_aliases) out += cat(ip, "\t", join(names, " "), "\n");
  return out;
}

std::string resolv_conf_file(const Pod& pod, const std::string& host_text) {
  Dns dns;
  std::string other;
  const auto append = [](std::vector<std::string>& to, auto begin, auto end) {
    for (; begin != end; ++begin) {
      if (std::find(to.begin(), to.end(), *begin) == to.end()) to.emplace_back(*begin);
    }
  };
  for (const auto line : split(pod.dns.own_only ? std::string_view{} : host_text, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 2) continue;
    if (words[0] == "nameserver") {
      if (pod.network == Network::kHost || !on_loopback(words[1]))
        append(dns.nameservers, words.begin() + 1, words.begin() + 2);
    } else if (words[0] == "search" || words[0] == "domain") {
      dns.searches.assign(words.begin() + 1,
                          words.end());  // the last such line counts: resolv.conf(5)
    } else if (words[0] == "options") {
      append(dns.options, words.begin() + 1, words.end());
    } else {
      other += cat(line, "\n");
    }
  }
  append(dns.nameservers, pod.dns.nameservers.begin(), pod.dns.nameservers.end());
  append(dns.searches, pod.dns.searches.begin(), pod.dns.searches.end());
  for (const auto& option : pod.dns.options) {  // "ndots:2" in place of "ndots:1"
    const auto name = option.substr(0, option.find(':'));
    std::erase_if(dns.options,
                  [&](const auto& old) { return old.substr(0, old.find(':')) == name; });
    dns.options.push_back(option);
  }
  std::string out;
  for (const auto& server : dns.nameservers) out += cat("nameserver ", server, "\n");
  if (!dns.searches.empty()) out += cat("search ", join(dns.searches, " "), "\n");
  if (!dns.options.empty()) out += cat("options ", join(dns.options, " "), "\n");
  return out + other;
}

std::string tmpfs_options(const Volume& volume) {
  if (!volume.size_limit) return "mode=1777";
  return cat("mode=1777,size=", *volume.size_limit);
}

}  // namespace wherry::pod
