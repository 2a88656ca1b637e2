// All calls of a group as one state machine: over any communicators and local ranks, everything progresses together.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "collectives/call_check.h"
#include "collectives/direct_message.h"
#include "collectives/direct_runner.h"
#include "collectives/local_member.h"
#include "collectives/profiled_group.h"
#include "collectives/step_runner.h"

namespace falcon::collectives {

/// Used by one thread. Collectives of a communicator share its channels in the order of submission; messages to or from
/// one peer keep their order; all else runs side by side. A communicator that breaks loses its calls; the others go on.
class GroupRun {
 public:
  explicit GroupRun(const Clock& clock) : clock_(clock) {}

  /// Checks a call; nothing has happened yet. Errors: a broken communicator's, invalidArgument, invalidUsage.
  Status add(LocalMember& member, const Call& call) { return add(member, call, {}); }
  /// The same of a call whose events a profiler plugin wants: `profiled.event` is the API's.
  Status add(LocalMember& member, const Call& call, const ProfiledCall& profiled);
  /// After the last add(): messages to oneself have their counterparts. Errors: invalidUsage.
  Status checkOwnMessages() const;
  /// After the last add(): pairs messages to oneself, numbers the calls. On an error nothing has happened.
  Status start();

  /// Does what can be done now; true if anything moved. Never blocks.
  bool progress();
  bool finished() const { return openCalls_ == 0; }
  void appendWaitSources(std::vector<transport::WaitSource>& sources) const;

  /// Some of what is stuck waits for what peers publish on a board.
  bool waitsAtBoards() const;
  /// Before sleeping: from now on they ring. Then progress() once more, sleep, withdraw.
  void announceSleep();
  void withdrawSleep();

  /// Once finished: success, or the first error.
  Status outcome() const;
  /// Once finished: hands the calls that succeeded to the communicators' recorders.
  void record(Nanoseconds enter, Nanoseconds leave) const;

 private:
  struct Member {
    explicit Member(LocalMember& member) : local(&member) {}
    LocalMember* local;
    std::vector<size_t> collectives;  // by index of entries_
    size_t started = 0;               // how many of them have started
    std::vector<size_t> ownSends, ownReceives;
    std::optional<Error> error;
    ProfiledLaunch launch;  // of what has started and is not on its way yet
  };
  struct Entry {
    Entry(size_t memberIndex, const Call& what, const ProfiledCall& events)
        : member(memberIndex), call(what), profiled(events) {}
    size_t member;
    Call call;
    std::uint64_t sequence = 0;
    size_t openTasks = 0;
    bool closed = false;  // no longer among openCalls_
    RingSchedule::Order ring;
    std::vector<CallStatement> statements;  // with checks: of all ranks, or (a message) own and peer's
    Nanoseconds stated{0};                  // when this rank made its own
    bool missed = false;                    // who is missing has been named
    ProfiledCall profiled;
  };
  struct Task {
    size_t entry;
    std::variant<StepRunner, DirectRunner, DirectMessage> runner;
    bool checks = false;                       // carries statements, not data
    std::shared_ptr<ProfiledChannel> channel;  // that it works on; null: nobody wants to know
  };
  struct Queue {
    size_t member;
    QueueKey key;
    std::vector<Task> tasks;
    size_t running = 0;  // index of the task whose turn it is; those before are done
    bool empty() const { return running == tasks.size(); }
  };

  size_t memberIndex(LocalMember& local);
  Queue& queueOf(size_t member, const QueueKey& key);
  void addTask(size_t entry, const TaskPlan& plan, bool checks = false);
  bool addDirectTask(size_t entry);
  std::optional<TransferWatch> watchFor(const Entry& entry, int channel, std::size_t chunkBytes,
                                        bool aroundRing = false) const;
  bool recordsTransfers(const Entry& entry) const;
  void tellLaunch(size_t entry, std::span<const TaskPlan> plans, const Algorithm* algorithm);
  void tellLaunch(size_t entry, const ProfiledWay& way);
  std::shared_ptr<ProfiledChannel> channelOf(size_t entry, int channel);
  void closeLaunches();
  void addMessageTask(size_t entry);
  std::optional<transport::NodeBoard::Awaited> awaitedAtBoard(const Queue& queue) const;
  void startMessage(size_t entry);
  bool startCollectives(size_t member);
  void startTasks(size_t entry);
  void finishChecks();
  Status compare(const Entry& entry) const;
  void nameMissing();
  void closeIfDone(Entry& entry);
  bool checkHealth(size_t member);
  bool progressQueues();
  Result<bool> progressQueue(Queue& queue);
  void complete(Task& task);
  void giveUp(size_t member, const Error& error);

  const Clock& clock_;
  std::vector<Member> members_;
  std::vector<Entry> entries_;
  std::vector<Queue> queues_;
  bool checks_ = false;
  std::vector<size_t> checked_;  // entries whose statements are complete and not compared yet
  size_t openCalls_ = 0;
  std::optional<Error> firstError_;
  struct Sleep {
    transport::NodeBoard* board;
    transport::NodeBoard::Awaited awaited;
  };
  std::vector<Sleep> announced_;
};

}  // namespace falcon::collectives
