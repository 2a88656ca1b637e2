#include "control/authority.h"

#include "bootstrap/random.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "control/job.h"
#include "instrument/call_log.h"
#include "unit/base/environment.h"
#include "unit/control/idle_membership.h"

namespace falcon::control {
namespace {

using Word = Authority::Word;

TEST(Authority, IsTheControllersAlone) {
  Authority authority(1);
  EXPECT_EQ(authority.wordOf(1, SwitchOff{}), Word::obeyed);
  EXPECT_EQ(authority.wordOf(2, SwitchOff{}), Word::forged);
  EXPECT_EQ(authority.wordOf(2, Decide{}), Word::forged);
  authority.changed(2);
  EXPECT_EQ(authority.wordOf(2, SwitchOff{}), Word::obeyed);
  EXPECT_EQ(authority.wordOf(3, SwitchOff{}), Word::forged);
}

TEST(Authority, WhoHandsOverEndsWhatItHadBegunAndBeginsNothing) {
  Authority authority(2);
  authority.changed(1);
  for (const Message& order : {Message(Decide{}), Message(SuspendAnswer{}), Message(Examined{})})
    EXPECT_EQ(authority.wordOf(2, order), Word::obeyed);
  for (const Message& order : {Message(CloseTrap{}), Message(Propose{}), Message(SwitchOff{}), Message(RunWave{})})
    EXPECT_EQ(authority.wordOf(2, order), Word::late);
  authority.changed(2);
  EXPECT_EQ(authority.wordOf(2, CloseTrap{}), Word::obeyed);
}

/// The job of this process, whose controller it is, and a member of its bus that is none.
struct JobWithAnotherMember : testing::Test {
  JobWithAnotherMember() {
    known.membership = &membership;
    known.members.resize(2);
    known.members[0].extra = job->contact();
    known.members[1].extra = other->contact().encode();
    std::vector<bootstrap::BusContact> contacts;
    for (const auto& member : known.members) contacts.push_back(*bootstrap::BusContact::decode(member.extra));
    job->add(known);
    other->meet(contacts, bootstrap::derivedSecret(known.secret, "bus", 0));
    const ProcessId self = contacts[0].process;
    for (int turn = 0; turn < 1200 && other->controller() != self; ++turn) other->take(50ms);
    EXPECT_EQ(other->controller(), self);
    controller = self;
  }
  ~JobWithAnotherMember() override { job->remove(membership); }
  void order(const Message& message) { other->to(controller, encode(message)); }
  /// The monitor has taken what came before.
  void drain() {
    order(AskSuspend{1, 60});
    for (int turn = 0; turn < 1200; ++turn)
      for (const auto& message : other->take(50ms))
        if (const auto said = decode(message.bytes); said && std::holds_alternative<CloseTrap>(*said)) return;
    ADD_FAILURE() << "the job was not held";
  }

  /// Goes when the job is gone, which writes there to its end.
  struct Folder {
    const std::string path;
    ~Folder() { std::filesystem::remove_all(path); }
  };

  const std::string name = "test-authority-" + std::to_string(getpid());
  const Folder folder{instrument::jobFolder(name)};
  const Variable falcon{"NCCL_FALCON", "1"}, nameGiven{"NCCL_FALCON_JOB", name.c_str()}, rank{"RANK", "0"};
  const Variable debug{"NCCL_DEBUG", "WARN"};
  const std::shared_ptr<transport::Reactor> reactor = *transport::makeReactor(*SocketAddress::parse("127.0.0.1:0"));
  const std::shared_ptr<Job> job = Job::acquire(reactor, "unused");
  const std::shared_ptr<bootstrap::EmbeddedBus> other = *bootstrap::makeEmbeddedBus(reactor, 1);
  falcon::test::IdleMembership membership;
  KnownCommunicator known;
  ProcessId controller = 0;
};

TEST_F(JobWithAnotherMember, ObeysNoOrderOfIt) {
  log::reset();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) order(CloseTrap{7, 600});
  order(SwitchOff{});
  // It was not switched off, since what any member may ask for is done.
  drain();
  order(OpenTrap{7});
  const std::string said = testing::internal::GetCapturedStderr();
  log::reset();
  EXPECT_NE(said.find("which is not the controller of this job, gave an order"), std::string::npos) << said;
  EXPECT_EQ(said.find("gave an order"), said.rfind("gave an order")) << said;
  EXPECT_TRUE(job->resume());
}

}  // namespace
}  // namespace falcon::control
