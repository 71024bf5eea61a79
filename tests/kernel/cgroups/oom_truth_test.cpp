// How often the kernel killed for want of memory, and that nothing else looks like it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>

#include "base/file.h"
#include "tests/support/place_test.h"

namespace wherry::cgroups {
namespace {

class OomTruth : public test::PlaceTest {
 protected:
  // The kernel's own count, of the whole machine (Linux 4.13).
  static std::uint64_t kernel_count() {
    const auto text = read_file_at(AT_FDCWD, "/proc/vmstat", 1 << 16);
    for (const auto line : split(text.ok() ? std::string_view{text.value()} : "", '\n'))
      if (line.starts_with("oom_kill "))
        return parse_int<std::uint64_t>(line.substr(9)).value_or(0);
    ADD_FAILURE() << "/proc/vmstat has no oom_kill";
    return 0;
  }
  static oci::Resources small_memory() {
    oci::Resources resources;
    resources.memory = oci::MemoryResources{};
    resources.memory->limit = 8 << 20;
    return resources;
  }
  static int eat() {
    constexpr std::size_t kSize = 64 << 20;
    auto* memory = static_cast<volatile char*>(::mmap(
        nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    for (std::size_t i = 0; i < kSize; i += 4096) memory[i] = 1;
    return 0;
  }
};

TEST_F(OomTruth, PlainKillsAreNone) {
  auto place = make(small_memory());
  ASSERT_OK(place);
  for (int i = 0; i < 1000; ++i) {
    const auto child = spawn(*place, sleep_forever);
    ASSERT_OK(sys::pidfd_send_signal(child.pidfd.get(), SIGKILL));
    ASSERT_EQ(wait(child), 128 + SIGKILL) << i;
  }
  EXPECT_EQ(place->oom_count()->kills, 0U);
}

TEST_F(OomTruth, EachOfTheKernelsIsCounted) {
  const auto* longer = std::getenv("WHERRY_LONG");
  const unsigned rounds = longer != nullptr && longer == std::string_view{"1"} ? 500 : 50;
  auto place = make(small_memory());
  ASSERT_OK(place);
  const auto before = kernel_count();
  for (unsigned i = 0; i < rounds; ++i) {
    const auto child = spawn(*place, eat);
    ASSERT_EQ(wait(child), 128 + SIGKILL) << i;
    ASSERT_EQ(place->oom_count()->kills, i + 1);
  }
  EXPECT_EQ(kernel_count() - before, rounds);
}

}  // namespace
}  // namespace wherry::cgroups
