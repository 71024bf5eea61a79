// A writer fills a FIFO; the process that brings it into the log is killed again and again; nothing
// may be missing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/worker/container_log.h"

namespace wherry::shim {
namespace {

class LogKill : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/wherry-log-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    path_ = path;
    dir_ = UniqueFd{open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(AT_FDCWD, path_).ok()); }
  std::string path_;
  UniqueFd dir_;
};

constexpr int kLines = 60'000;
std::string line_of(int number) {
  return cat("line ", number, " ", std::string(static_cast<std::size_t>(number % 97), 'x'),
             number % 5000 == 0 ? std::string(40'000, 'l') : "");
}

[[noreturn]] void write_lines(int fd) {
  for (int i = 0; i < kLines; ++i)
    sys::write_all(fd, line_of(i) + "\n").ignore("the reader checks");
  _exit(0);
}

[[noreturn]] void bring(ContainerLog& log, int fifo) {
  while (true) {
    const auto pulled = log.spool(Stream::kStdout).pull(fifo, 64 * 1024);
    if (!pulled.ok()) _exit(3);
    const bool ended = pulled.value() == Spool::Pulled::kEnd;
    log.write_out(Stream::kStdout, ended ? StreamEnd::kEnded : StreamEnd::kOpen);
    log.give_back(Stream::kStdout, ~0ULL);
    if (ended) _exit(0);
    if (pulled.value() == Spool::Pulled::kNothing)
      sys::poll_one(fifo, POLLIN, Deadline::never()).ignore("pull tells");
  }
}

Result<ContainerLog> adopt(const ContainerLog& old, int dir) {
  return ContainerLog::adopt(
      {TRY(sys::dup(old.spool(Stream::kStdout).fd())),
       TRY(sys::dup(old.spool(Stream::kStderr).fd())), TRY(sys::dup(old.cursor_fd()))},
      dir, "0.log");
}

TEST_F(LogKill, NothingIsLostOrTwice) {
  ASSERT_EQ(mkfifoat(dir_.get(), "out", 0600), 0);
  UniqueFd fifo{openat(dir_.get(), "out", O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  UniqueFd write_end{openat(dir_.get(), "out", O_RDWR | O_CLOEXEC)};
  const pid_t writer = fork();
  if (writer == 0) {
    fifo.reset();
    write_lines(write_end.get());
  }
  write_end.reset();
  auto keeper =
      ContainerLog::create(dir_.get(), "0.log");  // its descriptors are what the keeper would hold
  ASSERT_TRUE(keeper.ok());

  std::mt19937 random{11};
  int kills = 0;
  for (bool ended = false; !ended;) {
    const pid_t worker = fork();
    if (worker == 0) {
      auto log = adopt(keeper.value(), dir_.get());
      if (!log.ok()) _exit(2);
      bring(log.value(), fifo.get());
    }
    usleep(static_cast<useconds_t>(random() % 3'000));
    kill(worker, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(worker, &status, 0), worker);
    if (WIFSIGNALED(status)) ++kills;
    ended = WIFEXITED(status);
    ASSERT_TRUE(!ended || WEXITSTATUS(status) == 0);
  }
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
  EXPECT_GT(kills, 10);

  const auto text = read_file_at(dir_.get(), "0.log", 64 << 20);
  ASSERT_TRUE(text.ok());
  int expected = 0;
  std::string raw;
  for (const auto line : split(text.value(), '\n')) {
    if (line.empty()) continue;
    const auto tag = line.find(" stdout ") + 8;
    raw += line.substr(tag + 2);
    if (line[tag] == 'P') continue;
    ASSERT_EQ(raw, line_of(expected)) << "line " << expected << " after " << kills << " kills";
    ++expected;
    raw.clear();
  }
  EXPECT_EQ(expected, kLines);
}

}  // namespace
}  // namespace wherry::shim
