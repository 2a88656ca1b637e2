// The controller is killed in the middle of an agreement, or while it holds the job with a decision just made. Its
// process, rank 0, is put together here from the library's parts, so that it can be killed at that very step; the other
// ranks use the library as programs do.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "base/event.h"
#include "base/format.h"
#include "bootstrap/make_unique_id.h"
#include "bootstrap/random.h"
#include "control/agreement.h"
#include "control/controller.h"
#include "gpu/engine_choice.h"
#include "harness/engine_rank.h"
#include "multi_rank/trap_job.h"

namespace falcon::test {
namespace {

using namespace std::chrono_literals;
using control::AgreementKind;
using control::Message;
using control::ProcessId;

constexpr int ranks = 4, survivors = ranks - 1;
constexpr int microBatches = 12;
constexpr std::int32_t split[] = {6, 3, 3}, ring[] = {0, 2, 1};  // what is proposed
constexpr int margin = 100;                                      // calls until it takes effect

enum Slot { died = 8 };

/// What the controller does before it is killed.
enum class Death {
  undecided,    ///< all have accepted its proposal, and nobody hears a decision
  halfDecided,  ///< one has heard it
  holding,      ///< all have, and are held before it takes effect
};
struct Case {
  Death death;
  AgreementKind kind = AgreementKind::ring;
  const char* onDeath = "release";
};

/// The bus, until decisions no longer pass.
class LastWords final : public control::Outbox {
 public:
  LastWords(bootstrap::Bus& bus, int decisions) : bus_(bus), decisionsLeft_(decisions) {}
  void to(ProcessId process, const Message& message) override {
    // A proposal that was refused is taken back, and made again.
    if (const auto* decide = std::get_if<control::Decide>(&message); decide && decide->commit) {
      if (decisionsLeft_ == 0) return;
      --decisionsLeft_;
      told_ = process;
    }
    bus_.to(process, encode(message));
  }
  void toAll(const Message& message) override { bus_.toAll(encode(message)); }
  ProcessId told() const { return told_; }  ///< the last decision

 private:
  bootstrap::Bus& bus_;
  int decisionsLeft_;
  ProcessId told_ = 0;
};

class NoEvents final : public EventSink {
 public:
  void add(const Event&) override {}
};

double wallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Rank 0. Ends by SIGKILL.
class ControllersProcess {
 public:
  ControllersProcess(const SharedBoard& board, const Case& how)
      : board_(board), how_(how), outbox_(*bus_, decisionsOf(how.death)) {}

  /// As rank 0 of the library does, whose members then find its bus.
  void join() {
    const auto id = orThrow(bootstrap::makeUniqueId(), "makeUniqueId");
    const auto bytes = id.bytes();
    std::memcpy(board_->ids[0], bytes.data(), bytes.size());
    board_->published[0].store(1);
    const std::shared_ptr<bootstrap::CommunicatorNetwork> network =
        orThrow(bootstrap::join(reactor_, id, 0, ranks, 60s), "join");
    orThrow(network->allGather(gpu::EngineOffer{NCCL_VERSION_CODE, {}, false, "", true}.encode(), 60s), "engine");
    world_ = orThrow(
        collectives::HostCommunicator::create(reactor_, network, 0, EngineHooks(), bus_->contact().encode()), "create");
    std::vector<bootstrap::BusContact> contacts;
    for (const auto& member : world_->members())
      contacts.push_back(orThrow(bootstrap::BusContact::decode(member.extra), "contact"));
    bus_->meet(contacts, bootstrap::derivedSecret(network->secret(), "bus", 0));
    orThrow(world_->split(-1, 0, {}), "split");
  }

  void runUntilKilled() {
    for (;;) {
      for (const bootstrap::BusMessage& news : bus_->take(5ms))
        if (const auto message = control::decode(news.bytes); news.kind == bootstrap::BusMessage::Kind::text && message)
          take(news.from, *message);
      controller_.tick();
      // Who has not registered its part of the layout yet votes against a split.
      if (agreement_ && agreement_->finished() && agreement_->state() != control::Agreement::State::committed)
        agreement_.reset();
      if (!agreement_ && processes_.size() == survivors && partOfTheOthers_ != 0) agree();
      if (controller_.state() == instrument::JobState::suspended) die();
    }
  }

 private:
  static int decisionsOf(Death death) {
    return death == Death::undecided ? 0 : death == Death::halfDecided ? 1 : survivors;
  }

  static control::ControllerSettings settings() {
    control::ControllerSettings settings;
    settings.validate = false;
    return settings;
  }

  void die() {
    board_.reach(died, 1);
    kill(getpid(), SIGKILL);
  }

  void agree() {
    const std::span<const std::int32_t> values = how_.kind == AgreementKind::ring ? std::span(ring) : std::span(split);
    agreement_.emplace(++agreements_,
                       control::Agreement::Subject{how_.kind, partOfTheOthers_, {values.begin(), values.end()}},
                       processes_, margin, clock_, 60s, outbox_);
  }

  void take(ProcessId from, const Message& message) {
    controller_.handle(from, message);
    if (const auto* formed = std::get_if<control::CommunicatorFormed>(&message))
      if (formed->jobRanks.size() == survivors) partOfTheOthers_ = formed->id;
    if (std::holds_alternative<control::Introduce>(message)) processes_.insert(from);
    // Messages arrive in order: who has answered this has obeyed the decision before it.
    if (std::holds_alternative<control::ClockAnswer>(message) && from == awaited_) die();
    if (!agreement_ || agreement_->finished()) return;
    if (const auto* counter = std::get_if<control::Counter>(&message)) agreement_->handle(from, *counter);
    if (const auto* vote = std::get_if<control::Vote>(&message)) agreement_->handle(from, *vote);
    if (agreement_->state() == control::Agreement::State::committed) committed();
  }

  void committed() {
    if (how_.death == Death::holding) return controller_.handle(bus_->self(), control::AskSuspend{1, 600});
    if (outbox_.told() == 0) return die();
    awaited_ = outbox_.told();
    outbox_.to(awaited_, control::AskClock{});
  }

  const SharedBoard& board_;
  const Case how_;
  const SystemClock clock_;
  const std::shared_ptr<transport::Reactor> reactor_ = orThrow(transport::processReactor(), "processReactor");
  const std::shared_ptr<bootstrap::EmbeddedBus> bus_ =
      orThrow(bootstrap::makeEmbeddedBus(reactor_, 0), "makeEmbeddedBus");
  std::unique_ptr<collectives::HostCommunicator> world_;
  LastWords outbox_;
  NoEvents events_;
  control::Controller controller_{settings(), clock_, wallTime, outbox_, events_};
  std::set<ProcessId> processes_;
  CommunicatorId partOfTheOthers_ = 0;
  std::optional<control::Agreement> agreement_;
  std::uint64_t agreements_ = 0;
  ProcessId awaited_ = 0;
};

/// One of the others: trains with them until a call fails, or until all have seen that they go on.
class Survivor {
 public:
  Survivor(const SharedBoard& board, int rank) : board_(board), rank_(rank) {}

  std::string join() {
    if (auto wrong = makeCommunicator(board_, 0, rank_, ranks, world_); !wrong.empty()) return wrong;
    if (const auto made = ncclCommSplit(world_, 1, rank_, &mine_, nullptr); made != ncclSuccess)
      return saying("split", made);
    const ncclFalconLayout_t layout = {sizeof layout, survivors, 1, 1, rank_ - 1, 0, 0, microBatches};
    if (const auto known = ncclFalconRegisterLayout(mine_, &layout); known != ncclSuccess)
      return saying("ncclFalconRegisterLayout", known);
    return "";
  }

  /// A plan that fails ends nothing: the calls can go on.
  void train() {
    constexpr int callsToSee = 2 * margin, callValues = 3000;
    ncclFalconPlan_t plan = {};
    plan.size = sizeof plan;
    std::vector<std::int32_t> sums(callValues);
    int calls = 0;  // since the controller died
    for (std::uint64_t iteration = 0;; ++iteration) {
      if (plan_ == ncclSuccess) plan_ = ncclFalconIterationBegin(mine_, iteration, &plan);
      microBatches_ = plan.microBatches;
      std::fill(sums.begin(), sums.end(), 1);
      sums[0] = calls < callsToSee ? 1 : 0;
      call_ = ncclAllReduce(sums.data(), sums.data(), sums.size(), ncclInt32, ncclSum, mine_, hostStream);
      if (call_ == ncclSuccess && std::count(sums.begin() + 1, sums.end(), survivors) != callValues - 1)
        call_ = ncclInternalError;
      if (call_ != ncclSuccess || sums[0] == 0) break;
      if (board_->steps[died].load() != 0) ++calls;
      std::this_thread::sleep_for(1ms);  // an iteration
    }
    // Others may still be in the last call.
    (call_ == ncclSuccess ? ncclCommDestroy : ncclCommAbort)(mine_);
    ncclCommAbort(world_);
  }

  ncclResult_t lastCall() const { return call_; }
  ncclResult_t lastPlan() const { return plan_; }
  int lastMicroBatches() const { return microBatches_; }

 private:
  const SharedBoard& board_;
  const int rank_;
  ncclComm_t world_ = nullptr, mine_ = nullptr;  ///< the second one without the rank that dies
  ncclResult_t call_ = ncclSuccess, plan_ = ncclSuccess;
  int microBatches_ = 0;
};

/// Rank 0 dies as `how` says; `check` looks at each of the others when it has come to its end. What they have said.
struct Aftermath {
  std::vector<std::string> logs;
  std::string events;
};
Aftermath controllerDies(const Case& how, const std::function<std::string(int rank, const Survivor&)>& check) {
  SharedBoard board;
  const TrapJob job;
  const auto logs = logsOf(ranks);
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    job.join(rank, ranks);
    logs[rank]->use("WARN");
    setenv("NCCL_FALCON_TRAP_DEATH", how.onDeath, 1);
    // Sums go round the ring that is in force.
    setenv("NCCL_P2P_DISABLE", "1", 1);
    setenv("NCCL_ALGO", "Ring", 1);
    if (rank == 0) {
      ControllersProcess process(board, how);
      process.join();
      process.runUntilKilled();
    }
    Survivor survivor(board, rank);
    if (auto wrong = survivor.join(); !wrong.empty()) return wrong;
    survivor.train();
    return check(rank, survivor);
  });
  Aftermath after;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankOutcome& outcome = forked.wait(rank, Seconds(150));
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    if (rank == 0) {
      EXPECT_EQ(outcome.signal, SIGKILL) << outcome.report;
      EXPECT_EQ(board->steps[died].load(), 1);
      continue;
    }
    EXPECT_EQ(outcome.exitCode, 0) << outcome.report;
    after.logs.push_back(logs[rank]->text());
  }
  after.events = job.events();
  return after;
}

std::string callFailed(int, const Survivor& survivor) {
  return survivor.lastCall() == ncclRemoteError ? "" : saying("the last call", survivor.lastCall());
}

std::string goesOn(const Survivor& survivor) {
  if (survivor.lastPlan() != ncclSuccess) return saying("the last plan", survivor.lastPlan());
  return survivor.lastCall() == ncclSuccess ? "" : saying("the last call", survivor.lastCall());
}

/// Under the split that was proposed, or the one before: an equal one.
std::string goesOnWith(bool proposed, int rank, const Survivor& survivor) {
  if (auto wrong = goesOn(survivor); !wrong.empty()) return wrong;
  const int mine = proposed ? split[static_cast<std::size_t>(rank) - 1] : microBatches / survivors;
  return survivor.lastMicroBatches() == mine ? "" : std::to_string(survivor.lastMicroBatches()) + " micro-batches";
}

int sayingOf(const Aftermath& after, const std::string& words) {
  return static_cast<int>(std::count_if(after.logs.begin(), after.logs.end(),
                                        [&](const std::string& log) { return countOf(log, words) > 0; }));
}

constexpr const char* heldWords = "the controller died while the job was held";

/// One process says it, once, and nobody anything else of it.
void expectOneWarning(const Aftermath& after, const std::string& outcome) {
  int all = 0, right = 0;
  for (const std::string& log : after.logs) {
    all += countOf(log, "plan");
    right +=
        countOf(log, "the controller of this job died while a plan was being agreed: the job goes on with " + outcome);
  }
  EXPECT_EQ(right, 1);
  EXPECT_EQ(all, right) << after.logs[0] << after.logs[1] << after.logs[2];
}

TEST(ControllersDeath, BetweenProposalAndDecisionLeavesTheOldRingToAll) {
  const auto after = controllerDies({Death::undecided}, [](int, const Survivor& survivor) { return goesOn(survivor); });
  expectOneWarning(after, "the old ring");
}

// Of a mix of rings the sums would not come, or be wrong.
TEST(ControllersDeath, WhereOneHasHeardTheDecisionForARingAllFollowIt) {
  const auto after =
      controllerDies({Death::halfDecided}, [](int, const Survivor& survivor) { return goesOn(survivor); });
  expectOneWarning(after, "the new ring");
}

TEST(ControllersDeath, BetweenProposalAndDecisionLeavesTheOldSplitToAll) {
  const auto after =
      controllerDies({Death::undecided, AgreementKind::microBatches},
                     [](int rank, const Survivor& survivor) { return goesOnWith(false, rank, survivor); });
  expectOneWarning(after, "the old split of micro-batches");
}

TEST(ControllersDeath, WhereOneHasHeardTheDecisionForASplitAllFollowIt) {
  const auto after =
      controllerDies({Death::halfDecided, AgreementKind::microBatches},
                     [](int rank, const Survivor& survivor) { return goesOnWith(true, rank, survivor); });
  expectOneWarning(after, "the new split of micro-batches");
}

TEST(ControllersDeath, WhileAllAreHeldLetsThemGoOnWithWhatWasDecided) {
  const auto after =
      controllerDies({Death::holding, AgreementKind::microBatches},
                     [](int rank, const Survivor& survivor) { return goesOnWith(true, rank, survivor); });
  EXPECT_EQ(sayingOf(after, heldWords), survivors) << after.logs[0];
  EXPECT_NE(after.events.find("\"resumed\""), std::string::npos) << after.events;
  EXPECT_NE(after.events.find(heldWords), std::string::npos) << after.events;
}

TEST(ControllersDeath, WhileAllAreHeldAbortsThemWhereThatIsAskedFor) {
  const auto after = controllerDies({Death::holding, AgreementKind::microBatches, "abort"}, callFailed);
  EXPECT_EQ(sayingOf(after, heldWords), survivors) << after.logs[0];
}

}  // namespace
}  // namespace falcon::test
