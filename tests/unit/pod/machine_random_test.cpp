// Random lives of random pods against rules that hold for every one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "base/text.h"
#include "runtime/pod/machine.h"

namespace wherry::pod {
namespace {

using Kind = ContainerSpec::Kind;

// Plays the worker and the kernel: carries out actions, answers when it likes, and checks each
// action against what exists.
class World {
 public:
  explicit World(std::uint64_t seed) : random_{seed}, spec_{random_spec()}, machine_{spec_} {}

  void live() {
    step(Asked{Asked::What::kRun});
    for (int i = 0; i < 400 && !failed(); ++i) random_event();
    step(Asked{Asked::What::kStop, {}, Millis{50}});
    for (int i = 0; i < 2000 && !machine_.finished() && !failed(); ++i) useful_event();
    if (failed()) return;
    EXPECT_TRUE(machine_.finished());
    EXPECT_EQ(finishes_, runs_);
    EXPECT_TRUE(exists_.empty());
    EXPECT_TRUE(armed_.empty());
  }

 private:
  struct Thing {
    bool behind_gate = false, running = false, ended = false;
    bool create_open = false, start_open = false, destroy_open = false;
  };

  std::size_t pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>{0, n - 1}(random_);
  }
  bool failed() const { return testing::Test::HasFailure(); }

  PodSpec random_spec() {
    PodSpec spec;
    const auto restart = [&] { return static_cast<Restart>(pick(3)); };
    for (std::size_t i = pick(3); i > 0; --i) {
      const bool sidecar = pick(2) == 0;
      spec.containers.push_back({cat("i", i), sidecar ? Kind::kSidecar : Kind::kInit,
                                 sidecar ? Restart::kAlways : restart(), 15});
    }
    for (std::size_t i = 1 + pick(3); i > 0; --i)
      spec.containers.push_back({cat("m", i), Kind::kMain, restart(), 15});
    spec.grace = Millis{static_cast<int>(pick(3)) * 100};
    spec.backoff_first = Millis{20};
    spec.backoff_max = Millis{100};
    spec.backoff_reset = Millis{300};
    return spec;
  }

  const std::string& any_name() { return spec_.containers[pick(spec_.containers.size())].name; }

  void random_event() {
    now_ += Millis{static_cast<int>(pick(20))};
    switch (pick(12)) {
      case 0:  // nonsense of every kind changes nothing that may not be changed
        return nonsense();
      case 1:
        if (pick(8) == 0)
          return step(Asked{Asked::What::kStop, {}, Millis{static_cast<int>(pick(200))}});
        return;
      case 2:
        if (pick(6) == 0)
          return step(Asked{Asked::What::kStop, any_name(), Millis{static_cast<int>(pick(60))}});
        return;
      case 3:
        return step(Asked{Asked::What::kRun});
      case 4:
        if (pick(4) == 0) return die_and_recover();
        return;
      default:
        return useful_event();
    }
  }

  void nonsense() {
    switch (pick(5)) {
      case 0:
        return step(TimerFired{any_name(), static_cast<Timer>(pick(3))});
      case 1:
        return step(TimerFired{"", Timer::kGrace});
      case 2:
        return step(Exited{"nobody", 1});
      case 3:
        return step(Created{"nobody"});
      default:
        return step(Failed{"nobody", "no"});
    }
  }

  // One answer that is owed, one end, or one timer.
  void useful_event() {
    std::vector<std::function<void()>> choices;
    for (auto& [name, thing] : exists_) {
      if (thing.create_open) choices.push_back([&, n = name] { answer_create(n); });
      if (thing.start_open) choices.push_back([&, n = name] { answer_start(n); });
      if (thing.destroy_open) choices.push_back([&, n = name] { answer_destroy(n); });
      if (thing.running && !thing.ended && (killed_.contains(name) || pick(4) == 0))
        choices.push_back([&, n = name] { end(n); });
    }
    for (const auto& [timer, at] : armed_) {
      choices.push_back([this, timer = timer, at = at] {
        now_ = std::max(now_, at);
        armed_.erase(timer);
        step(TimerFired{timer.first, timer.second});
      });
    }
    if (!choices.empty()) choices[pick(choices.size())]();
  }

  void answer_create(std::string name) {
    auto& thing = exists_[name];
    thing.create_open = false;
    if (pick(10) == 0) return step(Failed{name, "cannot be created"});
    thing.behind_gate = true;
    step(Created{name});
  }
  void answer_start(std::string name) {
    auto& thing = exists_[name];
    thing.start_open = false;
    if (killed_.contains(name)) return end(name);
    if (pick(10) == 0) return step(Failed{name, "cannot be started", 127});
    thing.running = true;
    step(Started{name});
  }
  void answer_destroy(std::string name) {
    exists_[name].destroy_open = false;
    if (pick(5) == 0) return step(Failed{name, "it is busy"});
    exists_.erase(name);
    killed_.erase(name);
    step(Destroyed{name});
  }
  void end(std::string name) {
    exists_[name].ended = true;
    const std::optional<int> statuses[] = {0, 0, 1, 137, std::nullopt};
    step(Exited{name, statuses[pick(5)]});
  }

  // The worker's death: what it had not answered is forgotten, what it finds is told.
  void die_and_recover() {
    auto again = Machine::restore(spec_, machine_.save());
    ASSERT_TRUE(again.ok());
    machine_ = std::move(again).value();
    armed_.clear();
    for (auto& [name, thing] : exists_) {
      thing.start_open = thing.destroy_open = false;
      if (thing.create_open) exists_[name].create_open = false;
    }
    const auto found = exists_;
    for (const auto& [name, thing] : found) {
      if (!thing.behind_gate || thing.ended) continue;
      if (thing.running)
        step(Started{name});
      else
        step(Created{name});
    }
    // What was asked for meanwhile is asked for again.
    for (auto& [name, thing] : exists_)
      thing.create_open = thing.start_open = thing.destroy_open = false;
    resuming_ = true;
    carry_out(machine_.resume(now_));
    resuming_ = false;
  }

  void step(const Event& event) {
    const bool over = machine_.finished();
    if (std::holds_alternative<Asked>(event) && std::get<Asked>(event).what == Asked::What::kRun &&
        (runs_ == 0 || over))
      ++runs_;
    carry_out(machine_.on(event, now_));
  }

  void carry_out(const std::vector<Action>& actions) {
    for (const auto& action : actions) {
      std::visit([this](const auto& a) { carry(a); }, action);
      if (failed()) return;
    }
    EXPECT_TRUE(!machine_.finished() || exists_.empty());
  }
  void carry(const Create& a) {
    EXPECT_FALSE(exists_.contains(a.name)) << "made twice: " << a.name;
    for (const auto& before : spec_.containers) {  // no main one while an init one is there
      if (before.name == a.name) break;
      EXPECT_FALSE(before.kind == Kind::kInit && exists_.contains(before.name)) << a.name;
    }
    exists_[a.name].create_open = true;
  }
  void carry(const Start& a) {
    ASSERT_TRUE(exists_.contains(a.name));
    auto& thing = exists_[a.name];
    EXPECT_TRUE(thing.behind_gate && !thing.running && !thing.start_open) << a.name;
    thing.start_open = true;
  }
  void carry(const Signal& a) {
    ASSERT_TRUE(exists_.contains(a.name));
    EXPECT_TRUE(exists_[a.name].running && !exists_[a.name].ended) << a.name;
  }
  void carry(const Kill& a) {
    ASSERT_TRUE(exists_.contains(a.name));
    EXPECT_TRUE(resuming_ || !killed_.contains(a.name)) << a.name;
    killed_.insert(a.name);
  }
  void carry(const Destroy& a) {
    ASSERT_TRUE(exists_.contains(a.name)) << a.name;
    EXPECT_FALSE(exists_[a.name].destroy_open) << "destroyed twice at once: " << a.name;
    exists_[a.name].destroy_open = true;
    exists_[a.name].running = false;
  }
  void carry(const Arm& a) {
    EXPECT_GE(a.after.count(), 0);
    armed_[{a.name, a.timer}] = now_ + a.after;
  }
  void carry(const Disarm& a) { armed_.erase({a.name, a.timer}); }
  void carry(const Finish&) {
    ++finishes_;
    EXPECT_EQ(finishes_, runs_);
    EXPECT_TRUE(exists_.empty());
  }
  void carry(const Remove&) { FAIL() << "nobody asked for it"; }

  std::mt19937_64 random_;
  PodSpec spec_;
  Machine machine_;
  Millis now_{1000};
  std::map<std::string, Thing> exists_;
  std::set<std::string> killed_;
  std::map<std::pair<std::string, Timer>, Millis> armed_;
  int runs_ = 0, finishes_ = 0;
  bool resuming_ = false;
};

TEST(MachineRandom, RulesHoldInEveryLife) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(seed);
    World world{seed};
    world.live();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace wherry::pod
