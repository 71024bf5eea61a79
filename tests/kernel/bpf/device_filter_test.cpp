// Device programs on the kernel: what a child in the cgroup may open and make.
#include "bpf/device_filter.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "tests/support/device_model.h"
#include "tests/support/place_test.h"

namespace wherry::bpf {
namespace {

using test::ModelRule;

std::vector<oci::DeviceRule> to_oci(const std::vector<ModelRule>& rules) {
  std::vector<oci::DeviceRule> list;
  for (const auto& rule : rules) {
    oci::DeviceRule out;
    out.allow = rule.allow;
    out.type = std::string(1, rule.type);
    if (rule.major >= 0) out.major = rule.major;
    if (rule.minor >= 0) out.minor = rule.minor;
    out.access = rule.access;
    list.push_back(out);
  }
  return list;
}

const ModelRule kDenyAll{false, 'a', -1, -1, "rwm"};
const ModelRule kNull{true, 'c', 1, 3, "rwm"};
const ModelRule kZeroReadOnly{true, 'c', 1, 5, "r"};

bool may_open(const char* path, int flags) {
  const int fd = ::open(path, flags | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}
bool is_refused(const char* path, int flags) {
  return !may_open(path, flags) && errno == EPERM;
}

class DeviceFilter : public test::PlaceTest {
 protected:
  Result<> attach(const cgroups::Place& place, const std::vector<ModelRule>& rules) {
    return attach_device_filter(place.unified_fd(), TRY(compile_device_rules(to_oci(rules))));
  }
};

TEST_F(DeviceFilter, OnlyWhatIsAllowed) {
  auto place = make({});
  ASSERT_OK(place);
  ASSERT_OK(attach(*place, {kDenyAll, kNull, kZeroReadOnly, {true, 'c', -1, -1, "m"}}));
  const auto child = spawn(*place, [] {
    char name[] = "/tmp/wherry-test-cg.XXXXXX";
    if (!may_open("/dev/null", O_RDWR)) return 1;
    if (!may_open("/dev/zero", O_RDONLY)) return 2;
    if (!is_refused("/dev/zero", O_RDWR)) return 3;
    if (!is_refused("/dev/zero", O_WRONLY)) return 4;
    if (!is_refused("/dev/full", O_RDONLY)) return 5;
    if (!is_refused("/dev/kmsg", O_RDONLY)) return 6;
    if (::mkdtemp(name) == nullptr) return 7;
    const auto node = std::string{name} + "/node";
    const int made = ::mknod(node.c_str(), S_IFCHR | 0600, ::makedev(5, 1));
    ::unlink(node.c_str());
    errno = 0;
    const int block = ::mknod(node.c_str(), S_IFBLK | 0600, ::makedev(7, 0));
    const int why = errno;
    ::unlink(node.c_str());
    ::rmdir(name);
    if (made != 0) return 8;
    return block == -1 && why == EPERM ? 0 : 9;
  });
  EXPECT_EQ(wait(child), 0);
}

TEST_F(DeviceFilter, NoRulesDenyAll) {
  auto place = make({});
  ASSERT_OK(place);
  ASSERT_OK(attach(*place, {}));
  const auto child = spawn(*place, [] { return is_refused("/dev/null", O_RDONLY) ? 0 : 1; });
  EXPECT_EQ(wait(child), 0);
}

TEST_F(DeviceFilter, ThereIsOneProgramOfOursAndItCanBeRead) {
  auto place = make({});
  ASSERT_OK(place);
  EXPECT_TRUE(query_device_filters(place->unified_fd())->empty());
  const std::vector<ModelRule> rules{kDenyAll, kNull, kZeroReadOnly};
  std::uint32_t last = 0;
  for (int i = 0; i < 70; ++i) {  // more than a cgroup can hold: systemd #17489
    ASSERT_OK(attach(*place, rules));
    auto programs = query_device_filters(place->unified_fd());
    ASSERT_OK(programs);
    ASSERT_EQ(programs->size(), 1U);
    EXPECT_EQ((*programs)[0].name, "wherry_devices");
    EXPECT_NE((*programs)[0].id, last);
    last = (*programs)[0].id;
  }
  auto programs = query_device_filters(place->unified_fd());
  ASSERT_OK(programs);
  const auto& seen = (*programs)[0].instructions;
  if (seen.empty()) GTEST_SKIP() << "this kernel does not show translated instructions";
  const auto asks = [&](std::uint32_t minor, std::uint32_t access) {
    auto verdict = run_device_program(seen, {BPF_DEVCG_DEV_CHAR, access, 1, minor});
    EXPECT_TRUE(verdict.ok()) << verdict.error().message();
    return verdict.ok() && *verdict;
  };
  EXPECT_TRUE(asks(3, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE));
  EXPECT_TRUE(asks(5, BPF_DEVCG_ACC_READ));
  EXPECT_FALSE(asks(5, BPF_DEVCG_ACC_WRITE));
  EXPECT_FALSE(asks(7, BPF_DEVCG_ACC_READ));
}

TEST_F(DeviceFilter, NoGapInAThousandUpdates) {
  auto place = make({});
  ASSERT_OK(place);
  ASSERT_OK(attach(*place, {kDenyAll, kNull}));
  struct Shared {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> rounds{0};
  };
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared;
  const auto child = spawn(*place, [&] {
    while (!shared->stop) {
      if (!may_open("/dev/null", O_RDWR)) return 1;
      if (!is_refused("/dev/full", O_RDONLY)) return 2;
      ++shared->rounds;
    }
    return 0;
  });
  for (int i = 0; i < 1000; ++i) {
    const ModelRule other{true, 'c', 200, i, "rw"};
    ASSERT_OK(attach(*place, {kDenyAll, kNull, other}));
  }
  EXPECT_EQ(query_device_filters(place->unified_fd())->size(), 1U);
  shared->stop = true;
  EXPECT_EQ(wait(child), 0);
  EXPECT_GT(shared->rounds, 0U);
  ::munmap(memory, sizeof(Shared));
}

TEST_F(DeviceFilter, AFailedUpdateLeavesTheOldOne) {
  auto place = make({});
  ASSERT_OK(place);
  ASSERT_OK(attach(*place, {kDenyAll, kNull}));
  const auto before = query_device_filters(place->unified_fd())->at(0).id;
  bpf_insn bad{};
  bad.code = BPF_JMP | BPF_EXIT;  // R0 is not set: the verifier refuses it
  EXPECT_FALSE(attach_device_filter(place->unified_fd(), {bad}).ok());
  auto programs = query_device_filters(place->unified_fd());
  ASSERT_OK(programs);
  ASSERT_EQ(programs->size(), 1U);
  EXPECT_EQ((*programs)[0].id, before);
}

TEST_F(DeviceFilter, TheVerifierTakesTheMostRules) {
  auto place = make({});
  ASSERT_OK(place);
  std::vector<ModelRule> scattered, partial, minors;
  for (int i = 0; i < 4096; ++i) {
    scattered.push_back({i % 2 == 0, i % 3 == 0 ? 'b' : 'c', i % 64, i, i % 5 == 0 ? "rwm" : "rw"});
    partial.push_back({i % 2 == 0, 'a', i, i % 7, i % 3 == 0 ? "r" : "wm"});
    minors.push_back({true, 'c', 1, i, "rwm"});
  }
  for (const auto& rules : {scattered, partial, minors}) ASSERT_OK(attach(*place, rules));
}

TEST_F(DeviceFilter, WorksWithoutLockableMemory) {
  auto place = make({});
  ASSERT_OK(place);
  const auto child = spawn(*place, [&] {
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) < 0) return 1;
    if (!attach(*place, {kDenyAll, kNull}).ok()) return 2;
    rlimit after{1, 1};
    if (::getrlimit(RLIMIT_MEMLOCK, &after) < 0 || after.rlim_cur != 0) return 3;
    return 0;
  });
  EXPECT_EQ(wait(child), 0);
}

}  // namespace
}  // namespace wherry::bpf
