// What ends over UCX tell each other when they meet.
#include <gmock/gmock.h>

#include "core/tcp_dialling.h"
#include "ext_net/ends.h"
#include "ucx/ucx_loose_end.h"
#include "ucx/ucx_network.h"

namespace falcon::net::test {
namespace {

using testing::HasSubstr;

UcxFacts someFacts() {
  UcxFacts facts = UcxFacts::ours();
  facts.firstTag = 0x1234567890abcdef;
  facts.address = "where";
  return facts;
}

TEST(UcxFacts, AreReadAsTheyWereWritten) {
  const std::string text = someFacts().text();
  const auto read = UcxFacts::read(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), text);
  EXPECT_EQ(read->firstTag, someFacts().firstTag);
  EXPECT_EQ(read->address, "where");
}

TEST(UcxFacts, ThatAreNoneAreNotTaken) {
  const std::string text = someFacts().text();
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_FALSE(UcxFacts::read(text.substr(0, bytes))) << bytes;
  EXPECT_FALSE(UcxFacts::read(text + "x"));
  std::string changed = text;
  changed[0] ^= 1;
  EXPECT_FALSE(UcxFacts::read(changed));
  changed = text;
  changed[text.size() - 5 - 1] = '\xff';  // the address's length
  EXPECT_FALSE(UcxFacts::read(changed));
}

class UcxMeeting : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(over_.devices());
    listener_ = std::move(*over_.listen(0, handle_.get()));
  }
  /// What accept() says of one who belongs to the job and says that of its end; and what it answers.
  Error whyRefused(const std::string& facts) {
    const auto handle = *readHandle(handle_.get());
    TcpDialling dialling(handle, handle.address, facts);
    std::optional<Error> error;
    EXPECT_TRUE(waitFor([&] {
      EXPECT_TRUE(dialling.progress() && true);
      const auto accepted = listener_->accept();
      if (!accepted) error = accepted.error();
      return error.has_value();
    }));
    const FileDescriptor socket = dialling.isThrough() ? dialling.take() : FileDescriptor();
    answer_.resize(4096);
    const auto got = recv(socket.get(), answer_.data(), answer_.size(), MSG_DONTWAIT);
    answer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return error.value_or(Error::internal("it was not refused"));
  }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  UcxNetwork over_;
  HandleBytes handle_;
  std::unique_ptr<Listener> listener_;
  std::string answer_;
};

TEST_F(UcxMeeting, WithAnotherReleaseIsAnErrorThatSaysSo) {
  for (const std::string& facts : {std::string(), std::string("?"), std::string(4096, 'x')}) {
    const Error error = whyRefused(facts);
    EXPECT_EQ(error.code(), ErrorCode::remote);
    EXPECT_THAT(error.message(), HasSubstr("another release of falcon-ucx"));
  }
}

TEST_F(UcxMeeting, WithAnotherUcxIsAnErrorOfBothThatNamesTheVersions) {
  UcxFacts facts = someFacts();
  facts.minor += 1;
  const Error error = whyRefused(facts.text());
  EXPECT_EQ(error.code(), ErrorCode::invalidUsage);
  const auto words =
      fmt::format("has UCX {}.{}, and this process UCX {}.{}", facts.major, facts.minor, facts.major, facts.minor - 1);
  EXPECT_THAT(error.message(), HasSubstr(words));
  ASSERT_GT(answer_.size(), 4u) << "the other end is answered, so that it can say why, too";
  EXPECT_TRUE(UcxFacts::read(std::string_view(answer_).substr(4)));
}

TEST_F(UcxMeeting, WithWhomDoesNotFitLeavesTheListenerSound) {
  whyRefused("?");
  std::unique_ptr<Connection> sender, receiver;
  EXPECT_TRUE(connectBoth(over_, 0, handle_.get(), *listener_, sender, receiver));
}

TEST_F(UcxMeeting, GivesASenderThatNeedsNobodyToBeAskedForAShortMessage) {
  Ends ends(over_);
  Bytes sent = patternOf(100, 1), room(100);
  const auto send = ends.sender->start(sent.data(), sent.size(), nullptr);
  ASSERT_TRUE(finish(*send));
  const auto receive = ends.receiver->start(room.data(), room.size(), nullptr);
  ASSERT_TRUE(finish(*receive));
  EXPECT_EQ(sent, room);
}

}  // namespace
}  // namespace falcon::net::test
