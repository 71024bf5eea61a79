// What a program spent its time on, phase by phase, for --timing. Off (and free) until
// begin_timing().
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

struct Phase {
  std::string name;
  std::chrono::nanoseconds took{};
  std::vector<Phase> within;  // of another process, in which this one waited
};

// The first phase is what has passed since the process was made, execve and the start of the C
// library included: that is taken for the processor time of the process until now.
void begin_timing(std::string_view first);
bool timing();
// What has passed since the last mark was spent on `phase`; phases of one name that follow each
// other are one.
void mark_phase(std::string_view phase);
void mark_phase(std::string_view phase, std::vector<Phase> within);
// In a child made by clone: forgets what its parent spent.
void restart_timing();
const std::vector<Phase>& phases();

// One line for another process: "mounts=812345;devices=90211".
std::string encode_phases(const std::vector<Phase>& phases);
std::vector<Phase> decode_phases(std::string_view line);  // what is no phase is left out
// A line a phase, in milliseconds, and their sum.
std::string table_of(const std::vector<Phase>& phases);

}  // namespace wherry
