// What keeper and worker say to each other, over one SOCK_SEQPACKET pair: one struct a packet, a
// descriptor beside it where the kind says so. Plain data and no other header of the project,
// because the keeper links nothing but libc.
//
//   keeper                                  worker
//     ---- kFd(name) + descriptor ------->  for each one that it holds, in the order in which they
//     were stored
//     ---- kExit(serial, pid, ...) ------>  for each exit that is not acknowledged
//     ---- kReady(keeper's pid, runs) --->  everything was handed over; from here on the worker
//     acts
//     ---- kExit ------------------------>  whenever a child of the keeper ended
//     <--- kStore(name) + descriptor -----  hold this; a name that is there already is replaced
//     <--- kDrop(name) -------------------  close it; a name that ends in '/' stands for all that
//     begin with it
//     <--- kAck(serial) ------------------  that exit is on disk: forget it
//     <--- kBye --------------------------  nothing is left to keep: end when the worker has ended
//
// A packet that was sent has been delivered, even if the sender is killed right after: no answer is
// needed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace wherry::keeper {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kNameSize = 128;  // with the terminating 0
inline constexpr std::size_t kMostDescriptors = 512;
inline constexpr std::size_t kMostExits =
    256;                            // unacknowledged; more stay zombies until there is room
inline constexpr int kFirstFd = 3;  // the keeper's inherited descriptors, named by its argument
inline constexpr int kWorkerSocket = 3;  // the worker's end of the pair

enum class Kind : std::uint32_t { kFd = 1, kExit, kReady, kStore, kDrop, kAck, kBye };

struct Message {
  std::uint32_t version = kVersion;
  Kind kind{};
  std::int32_t pid = 0;  // kExit: who; kReady: the keeper
  std::int32_t status =
      0;  // kExit: the status word of wait(2); kReady: how often a worker was started
  std::uint64_t serial = 0;  // kExit, kAck
  std::uint64_t start_ticks =
      0;  // kExit: field 22 of /proc/PID/stat, read before the reap; 0: it could not be read
  std::int64_t time_ns = 0;   // kExit: CLOCK_REALTIME of the reap
  char name[kNameSize] = {};  // kFd, kStore, kDrop
};

// Names that the keeper itself knows; all others are the worker's business.
inline constexpr char kProgramName[] =
    "program";  // the sealed worker; it is run, never handed over

}  // namespace wherry::keeper
