#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "shim/protocol/event_log.h"
#include "shim/protocol/exit_record.h"
#include "shim/protocol/pod_status.h"
#include "shim/protocol/relay.h"
#include "shim/protocol/rpc.h"
#include "shim/worker/log_cursor.h"

namespace wherry::shim {
namespace {

class InDirectory : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/wherry-unit-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    path_ = path;
    dir_ = sys::openat(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { EXPECT_TRUE(remove_tree(AT_FDCWD, path_).ok()); }
  std::string path_;
  UniqueFd dir_;
};
using ExitRecords = InDirectory;
using EventLog = InDirectory;

TEST_F(ExitRecords, APreparedOneSaysNothingYet) {
  ASSERT_TRUE(prepare_exit_record(dir_.get()).ok());
  EXPECT_FALSE(read_exit_record(dir_.get()).value().has_value());
}

TEST_F(ExitRecords, TheFirstStays) {
  ASSERT_TRUE(prepare_exit_record(dir_.get()).ok());
  ASSERT_TRUE(write_exit_record(dir_.get(), {7, 0, true, 42}, Sync::kNo).ok());
  ASSERT_TRUE(write_exit_record(dir_.get(), {137, 9, false, 43}, Sync::kNo).ok());
  const auto record = read_exit_record(dir_.get()).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->code, 7);
  EXPECT_TRUE(record->oom_killed);
  EXPECT_EQ(record->time_ns, 42);
}

TEST_F(ExitRecords, UnknownIsAValue) {
  ASSERT_TRUE(write_exit_record(dir_.get(), {std::nullopt, 0, false, 1}, Sync::kData).ok());
  const auto record = read_exit_record(dir_.get()).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_FALSE(record->code.has_value());
}

TEST_F(ExitRecords, ATornOneIsNone) {
  ASSERT_TRUE(write_exit_record(dir_.get(), {0, 0, false, 1}, Sync::kNo).ok());
  const auto file = sys::openat(dir_.get(), "exit.rec", O_RDWR).value();
  const auto size = sys::fstat(file.get()).value().st_size;
  for (off_t at = 0; at < size; ++at) {
    char byte = 0;
    ASSERT_EQ(::pread(file.get(), &byte, 1, at), 1);
    const char changed = static_cast<char>(byte ^ 0x40);
    ASSERT_EQ(::pwrite(file.get(), &changed, 1, at), 1);
    EXPECT_FALSE(read_exit_record(dir_.get()).value().has_value()) << "byte " << at;
    ASSERT_EQ(::pwrite(file.get(), &byte, 1, at), 1);
  }
  ASSERT_TRUE(sys::ftruncate(file.get(), size - 1).ok());
  EXPECT_FALSE(read_exit_record(dir_.get()).value().has_value());
}

TEST_F(EventLog, NumbersGoUpAndStandInFront) {
  EXPECT_EQ(append_event(dir_.get(), {{"type", "a"}}).value(), 1U);
  EXPECT_EQ(append_event(dir_.get(), {{"type", "b"}}).value(), 2U);
  const auto text = read_file_at(dir_.get(), kEventFile, 10'000).value();
  const auto lines = split(text, '\n');
  ASSERT_EQ(lines.size(), 3U);
  const auto second = parse_json(lines[1], "event").value();
  EXPECT_EQ(json_int(second, "seq").value(), 2);
  EXPECT_EQ(second.begin().key(), "seq");
}

TEST_F(EventLog, ItIsBounded) {
  const std::string filler(1024 * 1024, 'x');
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(append_event(dir_.get(), {{"filler", filler}}).ok());
  EXPECT_EQ(list_dir(dir_.get()).value(),
            (std::vector<std::string>{kOlderEventFile, kEventFile, "events.lock"}));
  EXPECT_EQ(append_event(dir_.get(), Json::object()).value(), 13U);
}

TEST(Rpc, RequestsAreCheckedBeforeTheyAreRead) {
  EXPECT_TRUE(parse_request(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").ok());
  for (const char* bad :
       {"", "[]", "{}", R"({"jsonrpc":"1.0","id":1,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","id":{},"method":"ping"})",
        R"({"jsonrpc":"2.0","id":1,"method":7})",
        R"({"jsonrpc":"2.0","id":1,"method":"a","params":[]})",
        R"({"jsonrpc":"2.0","id":1,"method":"a","method":"b"})"})
    EXPECT_FALSE(parse_request(bad).ok()) << bad;
}

TEST(Rpc, AnErrorComesBackWhole) {
  const auto error =
      Error::sys("mount", "/proc", EPERM).context("create").step("mounts").hint("be root");
  const auto reply = parse_reply(error_line(7, error), 7);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().message(), error.message());
  EXPECT_EQ(reply.error().code(), Code::kDenied);
  EXPECT_EQ(reply.error().sys_errno(), EPERM);
  EXPECT_EQ(reply.error().step(), "mounts");
  EXPECT_EQ(reply.error().hint(), "be root");
}

TEST(Rpc, LinesComeInPieces) {
  LineBuffer lines;
  ASSERT_TRUE(lines.add("a").ok());
  EXPECT_FALSE(lines.next().has_value());
  ASSERT_TRUE(lines.add("b\nc\nd").ok());
  EXPECT_EQ(lines.next(), "ab");
  EXPECT_EQ(lines.next(), "c");
  EXPECT_FALSE(lines.next().has_value());
  EXPECT_FALSE(lines.empty());
}

TEST(Rpc, ALineHasALimit) {
  LineBuffer lines;
  EXPECT_FALSE(lines.add(std::string(kLongestLine + 1, 'x')).ok());
}

TEST(Relay, PacketsKeepTheirBounds) {
  const auto [left, right] = sys::socketpair(SOCK_SEQPACKET).value();
  ASSERT_TRUE(send_relay(left.get(), RelayKind::kStdout, 5, "abc", 0).ok());
  ASSERT_TRUE(send_relay(left.get(), RelayKind::kExit, kUnknownExit, {}, 0).ok());
  const auto first = receive_relay(right.get(), 0).value();
  EXPECT_EQ(first->payload, "abc");
  EXPECT_EQ(first->value, 5U);
  EXPECT_EQ(receive_relay(right.get(), 0).value()->value, kUnknownExit);
  EXPECT_EQ(receive_relay(right.get(), MSG_DONTWAIT).error().code(), Code::kBusy);
}

TEST(Relay, StrangePacketsAreRefused) {
  const auto [left, right] = sys::socketpair(SOCK_SEQPACKET).value();
  ASSERT_TRUE(sys::sendmsg(left.get(), "x").ok());
  EXPECT_EQ(receive_relay(right.get(), 0).error().code(), Code::kProtocol);
  ASSERT_TRUE(sys::sendmsg(left.get(), std::string(16, 'z')).ok());
  EXPECT_EQ(receive_relay(right.get(), 0).error().code(), Code::kProtocol);
}

TEST(LogCursor, TheLastCommitCounts) {
  auto cursor = LogCursor::create().value();
  for (std::uint64_t i = 1; i <= 5; ++i) {
    LogPosition position;
    position.log = i;
    cursor.commit(position);
    EXPECT_EQ(cursor.load().log, i);
  }
  const auto again = LogCursor::adopt(sys::dup(cursor.fd()).value()).value();
  EXPECT_EQ(again.load().log, 5U);
}

TEST(PodStatusJson, ComesBackTheSame) {
  PodStatus status;
  status.id = "ab";
  status.name = "web";
  status.ns = "default";
  status.phase = "Running";
  status.sandbox = "READY";
  status.labels = {{"a", "b"}};
  ContainerStatus container;
  container.name = "main";
  container.state = "exited";
  container.exit_code = 3;
  status.containers.push_back(container);
  const auto json = to_json(status);
  EXPECT_EQ(to_json(pod_status_from_json(json).value()), json);
  EXPECT_FALSE(pod_status_from_json(json).value().exit_code.has_value());
}

}  // namespace
}  // namespace wherry::shim
