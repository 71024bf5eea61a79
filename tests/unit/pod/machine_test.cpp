// Tables over the machine: what happens, and what is asked for then.
#include "runtime/pod/machine.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace wherry::pod {
namespace {

using Kind = ContainerSpec::Kind;

std::string text(const Action& action) {
  struct Visitor {
    std::string operator()(const Create& a) const {
      return a.attempt == 0 ? cat("create ", a.name) : cat("create ", a.name, " #", a.attempt);
    }
    std::string operator()(const Start& a) const { return cat("start ", a.name); }
    std::string operator()(const Signal& a) const { return cat("signal ", a.name, " ", a.signum); }
    std::string operator()(const Kill& a) const { return cat("kill ", a.name); }
    std::string operator()(const Destroy& a) const { return cat("destroy ", a.name); }
    std::string operator()(const Arm& a) const {
      return cat("arm ", timer(a.name, a.timer), " ", a.after.count());
    }
    std::string operator()(const Disarm& a) const { return cat("disarm ", timer(a.name, a.timer)); }
    std::string operator()(const Finish& a) const {
      return cat("finish ", a.exit_code ? std::to_string(*a.exit_code) : "?",
                 a.why.empty() ? "" : ": ", a.why);
    }
    std::string operator()(const Remove&) const { return "remove"; }
    static std::string timer(const std::string& name, Timer which) {
      const char* kinds[] = {"grace", "back-off", "destroy-again"};
      return cat(kinds[static_cast<int>(which)], name.empty() ? "" : " ", name);
    }
  };
  return std::visit(Visitor{}, action);
}

std::string text(const std::vector<Action>& actions) {
  std::vector<std::string> parts;
  for (const auto& action : actions) parts.push_back(text(action));
  return join(parts, ", ");
}

struct Row {
  std::int64_t at;  // ms
  Event event;
  std::string expected;
};

struct Trial {
  PodSpec spec;
  Machine machine;
  explicit Trial(PodSpec s) : spec{s}, machine{std::move(s)} {}

  void check(const std::vector<Row>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(text(machine.on(rows[i].event, Millis{rows[i].at})), rows[i].expected)
          << "row " << i;
      // What was saved goes on like what was not.
      auto again = Machine::restore(spec, machine.save());
      ASSERT_TRUE(again.ok()) << again.error().message();
      EXPECT_EQ(again->save(), machine.save()) << "row " << i;
      machine = std::move(again).value();
    }
  }
  std::string reason(std::string_view name) const { return machine.container(name)->reason; }
};

PodSpec one(Restart restart) {
  return {{{"a", Kind::kMain, restart, 15}}};
}
const Asked kRun{Asked::What::kRun};
const Asked kStop{Asked::What::kStop};
const Asked kRemove{Asked::What::kRemove};

TEST(Machine, OneContainerRunsToItsEnd) {
  Trial t{one(Restart::kNever)};
  t.check({{0, kRun, "create a"}, {1, Created{"a"}, "start a"}, {2, Started{"a"}, ""}});
  EXPECT_TRUE(t.machine.ready());
  EXPECT_EQ(t.machine.phase(), Phase::kRunning);
  t.check({{9, Exited{"a", 7}, "destroy a"}, {10, Destroyed{"a"}, "finish 7"}});
  EXPECT_EQ(t.machine.phase(), Phase::kFailed);
  EXPECT_EQ(t.machine.why(), "");
  EXPECT_EQ(t.reason("a"), "Error");
}

TEST(Machine, EndOfAllDecidesThePhase) {
  for (const auto& [status, phase] : {std::pair{std::optional<int>{0}, Phase::kSucceeded},
                                      std::pair{std::optional<int>{1}, Phase::kFailed},
                                      std::pair{std::optional<int>{}, Phase::kFailed}}) {
    Trial t{one(Restart::kNever)};
    t.check({{0, kRun, "create a"},
             {1, Created{"a"}, "start a"},
             {2, Started{"a"}, ""},
             {3, Exited{"a", status}, "destroy a"},
             {4, Destroyed{"a"}, cat("finish ", status ? std::to_string(*status) : "?")}});
    EXPECT_EQ(t.machine.phase(), phase);
    EXPECT_EQ(t.reason("a"), !status ? "Unknown" : *status == 0 ? "Completed" : "Error");
  }
}

TEST(Machine, ContainersStartInOrderAndThePrimaryDecidesTheCode) {
  Trial t{{{{"i", Kind::kInit}, {"a"}, {"b"}}}};
  t.check({{0, kRun, "create i"},
           {1, Created{"i"}, "start i"},
           {2, Started{"i"}, ""},
           {3, Exited{"i", 0}, "destroy i"},
           {4, Destroyed{"i"}, "create a"},
           {5, Created{"a"}, "start a"},
           {6, Started{"a"}, "create b"},
           {7, Created{"b"}, "start b"},
           {8, Started{"b"}, ""},
           {9, Exited{"a", 3}, "destroy a"},
           {10, Destroyed{"a"}, ""},
           {11, Exited{"b", 0}, "destroy b"},
           {12, Destroyed{"b"}, "finish 3"}});
}

TEST(Machine, BackOffDoublesAndIsForgotten) {
  Trial t{one(Restart::kAlways)};
  t.check({{0, kRun, "create a"}, {0, Created{"a"}, "start a"}, {0, Started{"a"}, ""}});
  std::int64_t now = 0;
  t.check({{now, Exited{"a", 0}, "destroy a"}, {now, Destroyed{"a"}, "create a #1"}});
  int attempt = 1;
  for (const std::int64_t wait : {10, 20, 40, 80, 160, 300, 300}) {
    const auto ms = wait * 1000;
    t.check({{now, Created{"a"}, "start a"},
             {now, Started{"a"}, ""},
             {now, Exited{"a", 1}, "destroy a"},
             {now, Destroyed{"a"}, cat("arm back-off a ", ms)}});
    EXPECT_EQ(t.reason("a"), "CrashLoopBackOff");
    t.check({{now + ms - 1, TimerFired{"a", Timer::kBackOff}, "arm back-off a 1"}});
    now += ms;
    t.check({{now, TimerFired{"a", Timer::kBackOff}, cat("create a #", ++attempt)},
             {now, TimerFired{"a", Timer::kBackOff}, ""}});
  }
  t.check({{now, Created{"a"}, "start a"},
           {now, Started{"a"}, ""},
           {now + 600'000, Exited{"a", 1}, "destroy a"},
           {now + 600'000, Destroyed{"a"}, cat("create a #", ++attempt)}});
  EXPECT_EQ(t.machine.container("a")->restarts, static_cast<unsigned>(attempt));
}

TEST(Machine, OnFailureEndsWithSuccess) {
  Trial t{one(Restart::kOnFailure)};
  t.check({{0, kRun, "create a"},
           {1, Created{"a"}, "start a"},
           {2, Started{"a"}, ""},
           {3, Exited{"a", std::nullopt}, "destroy a"},
           {4, Destroyed{"a"}, "create a #1"},
           {5, Created{"a"}, "start a"},
           {6, Started{"a"}, ""},
           {7, Exited{"a", 0}, "destroy a"},
           {8, Destroyed{"a"}, "finish 0"}});
}

TEST(Machine, StopAsksAllAtOnceAndKillsAtTheEndOfTheGracePeriod) {
  Trial t{{{{"a", Kind::kMain, Restart::kAlways, 15}, {"b", Kind::kMain, Restart::kAlways, 10}}}};
  t.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, "create b"},
           {0, Created{"b"}, "start b"},
           {0, Started{"b"}, ""},
           {100, kStop, "signal a 15, signal b 10, arm grace 30000"},
           {101, kStop, ""},
           {102, Exited{"b", 143}, "destroy b"},
           {103, Destroyed{"b"}, ""},
           {29'000, TimerFired{"", Timer::kGrace}, "arm grace 1100"},
           {30'100, TimerFired{"", Timer::kGrace}, "kill a"},
           {30'101, Exited{"a", 137}, "destroy a"},
           {30'102, Destroyed{"a"}, "disarm grace, finish 137"},
           {30'103, Exited{"a", 137}, ""},
           {30'104, kStop, ""}});
  EXPECT_EQ(t.machine.phase(), Phase::kFailed);  // asked for or not: they did not end with 0
  EXPECT_TRUE(t.machine.container("a")->stopped_by_request);
  EXPECT_EQ(t.reason("a"), "Stopped");
}

TEST(Machine, AShorterGracePeriodWins) {
  Trial t{one(Restart::kNever)};
  t.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, kStop, "signal a 15, arm grace 30000"},
           {0, Asked{Asked::What::kStop, "", Millis{2000}}, "arm grace 2000"},
           {0, Asked{Asked::What::kStop, "", Millis{0}}, "kill a"},
           {0, kRemove, ""},
           {1, Exited{"a", 137}, "destroy a"},
           {1, Destroyed{"a"}, "disarm grace, finish 137, remove"}});
}

TEST(Machine, StopWhileItIsBeingMade) {
  Trial t{{{{"a"}, {"b"}}}};
  t.check({{0, kRun, "create a"},
           {0, kStop, "arm grace 30000"},
           {0, Created{"a"}, "destroy a"},
           {0, Destroyed{"a"}, "disarm grace, finish ?"}});
  EXPECT_EQ(t.machine.phase(), Phase::kFailed);  // nothing of it ever ran
  Trial u{{{{"a"}, {"b"}}}};
  u.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, kStop, "arm grace 30000"},
           {0, Started{"a"}, "signal a 15"},
           {0, Exited{"a", 0}, "destroy a"},
           {0, Destroyed{"a"}, "disarm grace, finish 0"}});
}

TEST(Machine, StopOfABackOffEndsAtOnce) {
  Trial t{one(Restart::kAlways)};
  t.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, Exited{"a", 1}, "destroy a"},
           {0, Destroyed{"a"}, "create a #1"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, Exited{"a", 1}, "destroy a"},
           {0, Destroyed{"a"}, "arm back-off a 10000"},
           {5, kStop, "disarm back-off a, finish 1"}});
  EXPECT_EQ(t.machine.phase(), Phase::kFailed);  // it crashed; the request came later
}

TEST(Machine, StopOfOneContainerHoldsItDown) {
  Trial t{{{{"a", Kind::kMain, Restart::kAlways, 15}, {"b"}}}};
  t.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, "create b"},
           {0, Created{"b"}, "start b"},
           {0, Started{"b"}, ""},
           {0, Asked{Asked::What::kStop, "a", Millis{500}}, "signal a 15, arm grace a 500"},
           {500, TimerFired{"a", Timer::kGrace}, "kill a"},
           {501, Exited{"a", 137}, "disarm grace a, destroy a"},
           {502, Destroyed{"a"}, ""},
           {503, Asked{Asked::What::kStop, "nobody", {}}, ""},
           {504, Exited{"b", 0}, "destroy b"},
           {505, Destroyed{"b"}, "finish 137"}});
}

TEST(Machine, AStoppedPodSucceedsOnlyWhenAllEndWithZero) {
  for (const auto& [a, b, phase] :
       {std::tuple{0, 0, Phase::kSucceeded}, std::tuple{0, 5, Phase::kFailed},
        std::tuple{137, 0, Phase::kFailed}}) {
    Trial t{{{{"a"}, {"b"}}}};
    t.check({{0, kRun, "create a"},
             {0, Created{"a"}, "start a"},
             {0, Started{"a"}, "create b"},
             {0, Created{"b"}, "start b"},
             {0, Started{"b"}, ""},
             {0, kStop, "signal a 15, signal b 15, arm grace 30000"},
             {0, Exited{"a", a}, "destroy a"},
             {0, Destroyed{"a"}, ""},
             {0, Exited{"b", b}, "destroy b"},
             {0, Destroyed{"b"}, cat("disarm grace, finish ", a)}});
    EXPECT_EQ(t.machine.phase(), phase);
  }
}

TEST(Machine, OverIsWhatWillNotRunAgain) {
  const auto over = [](const Trial& t, std::string_view name) {
    return t.machine.container(name)->over;
  };
  Trial t{{{{"i", Kind::kInit, Restart::kNever, 15},
            {"a", Kind::kMain, Restart::kOnFailure, 15},
            {"b", Kind::kMain, Restart::kAlways, 15},
            {"c"}}}};
  t.check({{0, kRun, "create i"}, {0, Created{"i"}, "start i"}, {0, Started{"i"}, ""}});
  EXPECT_FALSE(over(t, "i") || over(t, "a") || over(t, "b"));
  t.check({{0, Exited{"i", 0}, "destroy i"}});
  EXPECT_TRUE(over(t, "i")) << "it has ended, though not all of it is cleared away";
  t.check({{0, Destroyed{"i"}, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, "create b"},
           {0, Created{"b"}, "start b"},
           {0, Started{"b"}, "create c"},
           {0, Created{"c"}, "start c"},
           {0, Started{"c"}, ""},
           {0, Exited{"a", 1}, "destroy a"}});
  EXPECT_FALSE(over(t, "a")) << "it will be made again";
  t.check({{0, Destroyed{"a"}, "create a #1"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, Exited{"a", 0}, "destroy a"}});
  EXPECT_TRUE(over(t, "a"));
  t.check({{0, Destroyed{"a"}, ""}, {0, Exited{"b", 0}, "destroy b"}});
  EXPECT_FALSE(over(t, "b"));
  t.check({{0, Destroyed{"b"}, "create b #1"},
           {0, Created{"b"}, "start b"},
           {0, Started{"b"}, ""},
           {0, Exited{"b", 0}, "destroy b"},
           {0, Destroyed{"b"}, "arm back-off b 10000"}});
  EXPECT_FALSE(over(t, "b"));
  t.check({{1, Asked{Asked::What::kStop, "b", {}}, "disarm back-off b"}});
  EXPECT_TRUE(over(t, "b")) << "no process ended for it";
}

TEST(Machine, OverWithoutEverHavingRun) {
  Trial t{{{{"i", Kind::kInit}, {"a"}, {"b"}}}};
  t.check({{0, kRun, "create i"},
           {0, Created{"i"}, "start i"},
           {0, Started{"i"}, ""},
           {0, Asked{Asked::What::kStop, "a", {}}, ""}});
  EXPECT_TRUE(t.machine.container("a")->over) << "its turn will not come";
  EXPECT_FALSE(t.machine.container("b")->over);
  t.check({{0, kStop, "signal i 15, arm grace 30000"}});
  EXPECT_TRUE(t.machine.container("b")->over);
}

TEST(Machine, AFirstStartThatFailsFailsThePodWhole) {
  for (const auto restart : {Restart::kNever, Restart::kOnFailure, Restart::kAlways}) {
    Trial t{{{{"a", Kind::kMain, restart, 15}, {"b", Kind::kMain, restart, 15}}}};
    t.check({{0, kRun, "create a"},
             {0, Created{"a"}, "start a"},
             {0, Started{"a"}, "create b"},
             {0, Created{"b"}, "start b"},
             {0, Failed{"b", "exec '/nonesuch': No such file or directory", 127},
              "destroy b, signal a 15, kill a"},
             {0, Destroyed{"b"}, ""},
             {0, Exited{"a", 137}, "destroy a"},
             {0, Destroyed{"a"},
              "disarm grace, finish 127: exec '/nonesuch': No such file or directory"}});
    EXPECT_EQ(t.machine.phase(), Phase::kFailed);
    EXPECT_EQ(t.reason("b"), "StartError");
  }
}

TEST(Machine, ALaterStartThatFailsIsLikeACrash) {
  Trial t{one(Restart::kAlways)};
  t.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, Exited{"a", 1}, "destroy a"},
           {0, Destroyed{"a"}, "create a #1"},
           {0, Failed{"a", "mount: No space left on device"}, "destroy a"},
           {0, Destroyed{"a"}, "arm back-off a 10000"}});
  EXPECT_EQ(t.machine.container("a")->message, "mount: No space left on device");
}

TEST(Machine, AnInitContainerThatFails) {
  const auto begin = [](Restart restart) {
    Trial t{{{{"i", Kind::kInit, restart, 15}, {"a", Kind::kMain, restart, 15}}}};
    t.check({{0, kRun, "create i"},
             {0, Created{"i"}, "start i"},
             {0, Started{"i"}, ""},
             {0, Exited{"i", 4}, "destroy i"}});
    return t;
  };
  auto never = begin(Restart::kNever);
  never.check({{0, Destroyed{"i"}, "finish 4: init container 'i' ended with status 4"}});
  for (const auto restart : {Restart::kOnFailure, Restart::kAlways}) {
    auto again = begin(restart);
    again.check({{0, Destroyed{"i"}, "create i #1"},
                 {0, Created{"i"}, "start i"},
                 {0, Started{"i"}, ""},
                 {0, Exited{"i", 0}, "destroy i"},
                 {0, Destroyed{"i"}, "create a"}});
  }
}

TEST(Machine, SidecarsStartInTurnAndStopLastInReverse) {
  Trial t{{{{"s", Kind::kSidecar, Restart::kAlways, 15},
            {"i", Kind::kInit},
            {"r", Kind::kSidecar, Restart::kAlways, 15},
            {"a"}}}};
  t.check({{0, kRun, "create s"},
           {0, Created{"s"}, "start s"},
           {0, Started{"s"}, "create i"},
           {0, Created{"i"}, "start i"},
           {0, Started{"i"}, ""},
           {0, Exited{"s", 1}, "destroy s"},  // it is made again beside the others
           {0, Destroyed{"s"}, "create s #1"},
           {0, Created{"s"}, "start s"},
           {0, Started{"s"}, ""},
           {0, Exited{"i", 0}, "destroy i"},
           {0, Destroyed{"i"}, "create r"},
           {0, Created{"r"}, "start r"},
           {0, Started{"r"}, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""}});
  EXPECT_TRUE(t.machine.ready());
  t.check({{0, Exited{"a", 0}, "destroy a"},
           {0, Destroyed{"a"}, "arm grace 30000, signal r 15"},
           {0, Exited{"r", 143}, "destroy r"},
           {0, Destroyed{"r"}, "signal s 15"},
           {30'000, TimerFired{"", Timer::kGrace}, "kill s"},
           {30'000, Exited{"s", 137}, "destroy s"},
           {30'000, Destroyed{"s"}, "disarm grace, finish 0"}});
  EXPECT_EQ(t.machine.phase(), Phase::kSucceeded);
}

TEST(Machine, DestroyIsTriedAgainUntilNothingIsLeft) {
  Trial t{one(Restart::kNever)};
  t.check({{0, kRun, "create a"},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, Exited{"a", 0}, "destroy a"},
           {0, Failed{"a", "pid 7 is in state D"}, "arm destroy-again a 1000"},
           {1000, TimerFired{"a", Timer::kDestroyAgain}, "destroy a"},
           {1000, Failed{"a", "pid 7 is in state D"}, "arm destroy-again a 2000"}});
  EXPECT_EQ(t.machine.container("a")->message, "pid 7 is in state D");
  t.check({{3000, TimerFired{"a", Timer::kDestroyAgain}, "destroy a"},
           {3001, Destroyed{"a"}, "disarm destroy-again a, finish 0"}});
}

TEST(Machine, RunAgainAndRemove) {
  Trial t{one(Restart::kNever)};
  t.check({{0, kStop, ""},
           {0, kRun, "create a"},
           {0, kRun, ""},
           {0, Created{"a"}, "start a"},
           {0, Started{"a"}, ""},
           {0, Exited{"a", 0}, "destroy a"},
           {0, Destroyed{"a"}, "finish 0"},
           {0, kRun, "create a"},
           {0, kRemove, ""},
           {0, Created{"a"}, "destroy a"},
           {0, Destroyed{"a"}, "disarm grace, finish ?, remove"},
           {0, kRun, ""},
           {0, kRemove, ""}});
  Trial never_run{one(Restart::kNever)};
  never_run.check({{0, kRemove, "remove"}});
}

TEST(Machine, ResumeAsksAgainForWhatWasNotAnswered) {
  struct Case {
    std::vector<Event> before;
    std::optional<Event> found;
    std::string on_found, expected;
  };
  const std::vector<Case> cases{
      {{kRun}, {}, "", "destroy a"},
      {{kRun}, Created{"a"}, "start a", "start a"},
      {{kRun}, Exited{"a", std::nullopt}, "destroy a", "destroy a"},
      {{kRun, Created{"a"}}, Created{"a"}, "", "start a"},
      {{kRun, Created{"a"}}, Started{"a"}, "", ""},
      {{kRun, Created{"a"}, Started{"a"}}, Started{"a"}, "", ""},
      {{kRun, Created{"a"}, Started{"a"}}, Exited{"a", 3}, "destroy a", "destroy a"},
      {{kRun, Created{"a"}, Started{"a"}, kStop}, Started{"a"}, "", "arm grace 29000"},
      {{kRun, Created{"a"}, Started{"a"}, Asked{Asked::What::kStop, "", Millis{0}}},
       {},
       "",
       "arm grace 0, kill a"},
      {{kRun, Created{"a"}, Started{"a"}, Exited{"a", 1}, Destroyed{"a"}, Created{"a"},
        Started{"a"}, Exited{"a", 1}, Destroyed{"a"}},
       {},
       "",
       "arm back-off a 9000"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Machine machine{one(Restart::kAlways)};
    for (const auto& event : cases[i].before) machine.on(event, Millis{0});
    auto again = Machine::restore(one(Restart::kAlways), machine.save());
    ASSERT_TRUE(again.ok());
    if (cases[i].found) {
      EXPECT_EQ(text(again->on(*cases[i].found, Millis{1000})), cases[i].on_found) << "case " << i;
    }
    EXPECT_EQ(text(again->resume(Millis{1000})), cases[i].expected) << "case " << i;
  }
  // A container whose worker died while making it is made once more, and that is no restart.
  Machine machine{one(Restart::kNever)};
  machine.on(kRun, Millis{0});
  EXPECT_EQ(text(machine.resume(Millis{1})), "destroy a");
  EXPECT_EQ(text(machine.on(Destroyed{"a"}, Millis{2})), "create a");
}

TEST(Machine, RestoreRefusesWhatIsNotItsOwn) {
  const Machine machine{one(Restart::kNever)};
  EXPECT_TRUE(Machine::restore(one(Restart::kNever), machine.save()).ok());
  PodSpec other = one(Restart::kNever);
  other.containers[0].name = "b";
  EXPECT_FALSE(Machine::restore(other, machine.save()).ok());
  for (const auto* bad :
       {"", "{}", "[]", "null", R"({"v":1,"phase":9,"containers":[]})",
        R"({"v":1,"phase":0,"containers":[7]})", R"({"v":2,"phase":0,"containers":[]})",
        R"({"v":1,"phase":0,"containers":[{"name":"a","step":3}]})"})
    EXPECT_FALSE(Machine::restore(one(Restart::kNever), bad).ok()) << bad;
}

TEST(Machine, SignalNames) {
  for (const auto& [name, number] : {std::pair{"SIGTERM", 15},
                                     {"TERM", 15},
                                     {"term", 15},
                                     {"15", 15},
                                     {"SIGUSR1", 10},
                                     {"RTMIN", 34},
                                     {"SIGRTMIN+3", 37},
                                     {"RTMAX-1", 63},
                                     {"64", 64}}) {
    const auto got = signal_number(name);
    ASSERT_TRUE(got.ok()) << name;
    EXPECT_EQ(got.value(), number) << name;
  }
  for (const auto* bad :
       {"", "0", "65", "-1", "SIG", "SIGNONE", "RTMIN-1", "RTMIN+31", "RTMAX+1", "RTMIN+", " TERM"})
    EXPECT_FALSE(signal_number(bad).ok()) << bad;
}

}  // namespace
}  // namespace wherry::pod
