#include "runtime/network/namespaces.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"

namespace wherry::network {
namespace {

Deadline soon() {
  return Deadline::in(Millis{5000});
}

// What `body` returns, run in a child of our own: what it changes of itself is gone with it.
std::string in_child(const std::function<std::string()>& body) {
  auto [reader, writer] = std::move(sys::pipe2(0)).value();
  auto child = clone_process({});
  EXPECT_TRUE(child.ok());
  if (child->pid == 0) {
    sys::write_all(writer.get(), body()).ignore("the parent sees that nothing came");
    _exit(0);
  }
  writer.reset();
  auto out = sys::read_to_end(reader.get(), 65536);
  sys::waitid_pidfd(child->pidfd.get(), WEXITED).ignore("it is our child");
  return out.ok() ? std::move(out).value() : out.error().message();
}

std::string namespace_id(int fd) {
  const auto st = sys::fstat(fd);
  return st.ok() ? std::to_string(st.value().st_ino) : "?";
}
std::string own_id(const char* name) {
  return std::to_string(sys::fstatat(AT_FDCWD, cat("/proc/self/ns/", name), 0).value().st_ino);
}

std::string own_hostname() {
  char name[65] = {};
  return ::gethostname(name, sizeof name) == 0 ? name : "?";
}

std::string loopback_state() {
  const UniqueFd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  struct ifreq request {};
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "lo");
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return "?";
  return (request.ifr_flags & IFF_UP) != 0 ? "up" : "down";
}

class Namespaces : public testing::Test {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
};

TEST_F(Namespaces, AreNewNamedAndLoopbackIsUp) {
  const auto before = own_hostname();
  NamespacePlan plan;
  plan.hostname = "web-1";
  const auto made = make_namespaces(plan, soon());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_NE(namespace_id(made.value().net.get()), own_id("net"));
  EXPECT_NE(namespace_id(made.value().ipc.get()), own_id("ipc"));
  EXPECT_NE(namespace_id(made.value().uts.get()), own_id("uts"));
  EXPECT_EQ(own_hostname(), before);
  const auto inside = in_child([&]() -> std::string {
    for (const auto* fd : {&made.value().net, &made.value().ipc, &made.value().uts}) {
      if (auto joined = sys::setns(fd->get(), 0); !joined.ok()) return joined.error().message();
    }
    return cat(own_hostname(), " ", loopback_state());
  });
  EXPECT_EQ(inside, "web-1 up");
  EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Namespaces, LoopbackStaysDownWhenNotWanted) {
  NamespacePlan plan;
  plan.loopback_up = false;
  const auto made = make_namespaces(plan, soon());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(in_child([&]() -> std::string {
              if (auto joined = sys::setns(made.value().net.get(), CLONE_NEWNET); !joined.ok())
                return joined.error().message();
              return loopback_state();
            }),
            "down");
}

TEST_F(Namespaces, OnlyWhatIsAskedFor) {
  NamespacePlan plan;
  plan.net = plan.uts = false;
  const auto made = make_namespaces(plan, soon());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_FALSE(made.value().net);
  EXPECT_FALSE(made.value().uts);
  EXPECT_NE(namespace_id(made.value().ipc.get()), own_id("ipc"));
  plan.ipc = false;
  EXPECT_TRUE(make_namespaces(plan, soon()).ok());
}

TEST_F(Namespaces, DescriptorsCloseOnExec) {
  const auto made = make_namespaces({}, soon());
  ASSERT_TRUE(made.ok());
  for (const auto* fd : {&made.value().net, &made.value().ipc, &made.value().uts})
    EXPECT_EQ(::fcntl(fd->get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(Namespaces, TheLimitThatIsReachedIsNamedWithItsValue) {
  // The limits belong to the user namespace of who makes: in one of its own, nobody else meets
  // them.
  const auto message = in_child([]() -> std::string {
    if (auto made = sys::unshare(CLONE_NEWUSER); !made.ok()) return made.error().message();
    auto dir = sys::openat(AT_FDCWD, "/proc/sys/user", O_PATH | O_DIRECTORY);
    if (!dir.ok()) return dir.error().message();
    auto limit = write_kernel_file(dir.value().get(), "max_ipc_namespaces", "0");
    if (!limit.ok()) return limit.error().message();
    const auto made = make_namespaces({}, soon());
    if (made.ok()) return "made";
    return cat(to_string(made.error().code()), ": ", made.error().message());
  });
  EXPECT_NE(message.find("user.max_ipc_namespaces = 0"), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("unsupported: make the pod's namespaces: ")) << message;
}

TEST_F(Namespaces, AHostNameThatIsTooLongIsAnErrorAndLeavesNoChild) {
  NamespacePlan plan;
  plan.hostname = std::string(65, 'x');
  const auto made = make_namespaces(plan, soon());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "make the pod's namespaces: sethostname: Invalid argument");
  EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0);
}

}  // namespace
}  // namespace wherry::network
