// The two halves of a handshake, over a pair of sockets between which the test may stand.
#include "transport/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace falcon::transport {
namespace {

using testing::HasSubstr;

Secret secretOf(int value) {
  Secret secret{};
  secret[3] = static_cast<std::byte>(value);
  return secret;
}

Hello helloWith(int secret = 1) {
  return {Purpose::bus, 77, secretOf(secret), 5, "payload"};
}

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    comes.reset(ends[0]);
    there.reset(ends[1]);
  }
  static std::string received(const FileDescriptor& socket) {
    std::string bytes(8192, ' ');
    const auto got = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
  }
  static void say(const FileDescriptor& socket, const std::string& bytes) {
    EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  FileDescriptor comes, there;
};

const SocketAddress somewhere = *SocketAddress::parse("127.0.0.1:7");

/// All that went over the wire, in order.
struct Record {
  std::string opening, challenge, proof;
};

/// Both halves, with what they say passing through here.
Record recordedExchange(Hello& heard) {
  Pair client, server;
  Greeting greeting(helloWith());
  Challenge challenge;
  Record record;
  EXPECT_TRUE(greeting.open(client.comes.get(), somewhere));
  Pair::say(server.comes, record.opening = Pair::received(client.there));
  EXPECT_EQ(challenge.read(server.there.get()), Challenge::Progress::opened);
  EXPECT_TRUE(challenge.challenge(server.there.get(), secretOf(1)));
  Pair::say(client.there, record.challenge = Pair::received(server.comes));
  EXPECT_EQ(greeting.read(client.comes.get()), Greeting::Progress::complete);
  Pair::say(server.comes, record.proof = Pair::received(client.there));
  EXPECT_EQ(challenge.read(server.there.get()), Challenge::Progress::complete);
  heard = challenge.hello();
  return record;
}

TEST(Handshake, TellsWhoComesAndNeverTheSecret) {
  Hello heard;
  const Record record = recordedExchange(heard);
  EXPECT_EQ(heard.purpose, Purpose::bus);
  EXPECT_EQ(heard.key, 77u);
  EXPECT_EQ(heard.from, 5);
  EXPECT_EQ(heard.payload, "payload");
  const Secret secret = secretOf(1);
  const std::string bytes(reinterpret_cast<const char*>(secret.data()), secret.size());
  EXPECT_EQ((record.opening + record.challenge + record.proof).find(bytes), std::string::npos);
}

TEST(Handshake, WhatWasRecordedIsOfNoUseToWhoComes) {
  Hello heard;
  const Record record = recordedExchange(heard);
  Pair pair;
  Challenge challenge;
  Pair::say(pair.comes, record.opening);
  ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::opened);
  ASSERT_TRUE(challenge.challenge(pair.there.get(), secretOf(1)));
  Pair::say(pair.comes, record.proof);
  ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::stranger);
  EXPECT_THAT(challenge.reason(), HasSubstr("does not know the secret"));
}

TEST(Handshake, WhatWasRecordedIsOfNoUseToWhoListens) {
  Hello heard;
  const Record record = recordedExchange(heard);
  Pair pair;
  Greeting greeting(helloWith());
  ASSERT_TRUE(greeting.open(pair.comes.get(), somewhere));
  Pair::say(pair.there, record.challenge);
  ASSERT_EQ(greeting.read(pair.comes.get()), Greeting::Progress::failed);
  EXPECT_EQ(greeting.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(greeting.error().message(), HasSubstr("does not know the secret"));
  EXPECT_EQ(Pair::received(pair.there).size(), record.opening.size()) << "it told who it is to a stranger";
}

// Who knows no secret asks the one side to compute what the other wants to see.
TEST(Handshake, NobodysOwnWordsProveAnything) {
  const Nonce comes{std::byte{1}}, there{std::byte{2}};
  const Hello hello = helloWith();
  const std::string challenge = encodeChallenge(hello, comes, there);
  Hello otherKey = hello, otherPurpose = hello;
  otherKey.key = 78;
  otherPurpose.purpose = Purpose::data;
  EXPECT_NE(encodeChallenge(hello, comes, there), encodeChallenge(otherKey, comes, there));
  EXPECT_NE(encodeChallenge(hello, comes, there), encodeChallenge(otherPurpose, comes, there));
  EXPECT_NE(encodeChallenge(hello, comes, there).substr(40), encodeChallenge(hello, there, comes).substr(40));
  const std::string proof = encodeProof({hello.purpose, hello.key, hello.secret, 0, ""}, comes, there);
  EXPECT_NE(challenge.substr(40), proof.substr(4, 32));
}

TEST(Handshake, EveryBitOfAProofCounts) {
  for (std::size_t at = 4; at < 60; ++at) {
    Pair pair;
    Greeting greeting(helloWith());
    Challenge challenge;
    ASSERT_TRUE(greeting.open(pair.comes.get(), somewhere));
    ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::opened);
    ASSERT_TRUE(challenge.challenge(pair.there.get(), secretOf(1)));
    ASSERT_EQ(greeting.read(pair.comes.get()), Greeting::Progress::complete);
    std::string proof = Pair::received(pair.there);
    if (at >= proof.size()) break;
    proof[at] = static_cast<char>(proof[at] ^ 1);
    Pair::say(pair.comes, proof);
    EXPECT_EQ(challenge.read(pair.there.get()), Challenge::Progress::stranger) << at;
  }
}

TEST(Handshake, CutsAndImpossibleLengthsAreStrangers) {
  for (const std::uint32_t length : {0u, 39u, 41u + 4096u, 0xffffffffu}) {
    Pair pair;
    Challenge challenge;
    Pair::say(pair.comes, encodeOpening(Purpose::bus, 77, {}));
    ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::opened);
    ASSERT_TRUE(challenge.challenge(pair.there.get(), secretOf(1)));
    Pair::say(pair.comes, std::string(reinterpret_cast<const char*>(&length), sizeof length));
    ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::stranger) << length;
    EXPECT_THAT(challenge.reason(), HasSubstr("impossible length"));
  }
  const std::string opening = encodeOpening(Purpose::bus, 77, {});
  for (std::size_t length = 0; length < opening.size(); ++length) {
    Pair pair;
    Challenge challenge;
    Pair::say(pair.comes, opening.substr(0, length));
    ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::incomplete);
    pair.comes.reset();
    EXPECT_EQ(challenge.read(pair.there.get()), Challenge::Progress::stranger);
  }
}

TEST(Handshake, WhoSpeaksAnotherProtocolIsNamedSo) {
  Pair pair;
  Greeting greeting(helloWith());
  ASSERT_TRUE(greeting.open(pair.comes.get(), somewhere));
  Pair::say(pair.there, "220 mail.example.com\r\n");
  ASSERT_EQ(greeting.read(pair.comes.get()), Greeting::Progress::failed);
  EXPECT_EQ(greeting.error().code(), ErrorCode::remote);
  EXPECT_THAT(greeting.error().message(), HasSubstr("127.0.0.1:7"));
}

TEST(Handshake, WhoHangsUpWithoutAWordMayBeAskedAgain) {
  Pair pair;
  Greeting greeting(helloWith());
  ASSERT_TRUE(greeting.open(pair.comes.get(), somewhere));
  pair.there.reset();
  EXPECT_EQ(greeting.read(pair.comes.get()), Greeting::Progress::turnedAway);
}

TEST(Handshake, WhoHasNoRandomBytesIsBelievedThatItCannotCome) {
  Pair pair;
  Hello hello = helloWith();
  hello.withdraws = true;
  Greeting greeting(hello);
  Challenge challenge;
  ASSERT_TRUE(greeting.open(pair.comes.get(), somewhere));
  ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::opened);
  ASSERT_TRUE(challenge.challenge(pair.there.get(), secretOf(1)));
  ASSERT_EQ(greeting.read(pair.comes.get()), Greeting::Progress::complete);
  ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::complete);
  EXPECT_EQ(challenge.hello().payload, "payload");
}

TEST(Handshake, WhatWithdrewOnceDoesNotWithdrawAgain) {
  const Nonce then{std::byte{3}};
  Pair pair;
  Challenge challenge;
  Pair::say(pair.comes, encodeOpening(Purpose::bus, 77, {}));
  ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::opened);
  ASSERT_TRUE(challenge.challenge(pair.there.get(), secretOf(1)));
  Pair::say(pair.comes, encodeProof(helloWith(), {}, then));
  EXPECT_EQ(challenge.read(pair.there.get()), Challenge::Progress::stranger);
}

/// The nonce that who comes has just made.
Nonce nonceIn(const std::string& opening) {
  Nonce nonce;
  std::memcpy(nonce.data(), opening.data() + opening.size() - nonce.size(), nonce.size());
  return nonce;
}

TEST(Handshake, WhoCannotProveItselfRefusesOnlyWithTheSecretAndOnlyNow) {
  std::string before;
  struct Case {
    const char* what;
    int secret;
    bool isReplayed;
    ErrorCode code;
    const char* says;
  };
  for (const Case& each : {Case{"with the secret", 1, false, ErrorCode::remote, "no random bytes"},
                           Case{"without", 2, false, ErrorCode::invalidUsage, "does not know the secret"},
                           Case{"recorded", 1, true, ErrorCode::invalidUsage, "does not know the secret"}}) {
    Pair pair;
    Greeting greeting(helloWith());
    ASSERT_TRUE(greeting.open(pair.comes.get(), somewhere));
    const std::string refusal = encodeRefusal(helloWith(each.secret), nonceIn(Pair::received(pair.there)));
    Pair::say(pair.there, each.isReplayed ? before : refusal);
    if (before.empty()) before = refusal;
    ASSERT_EQ(greeting.read(pair.comes.get()), Greeting::Progress::failed) << each.what;
    EXPECT_EQ(greeting.error().code(), each.code) << each.what;
    EXPECT_THAT(greeting.error().message(), HasSubstr(each.says)) << each.what;
    EXPECT_EQ(Pair::received(pair.there), "") << each.what << ": it said who it is";
  }
}

TEST(Handshake, NobodyIsReadBeforeItIsChallenged) {
  Pair pair;
  Challenge challenge;
  Pair::say(pair.comes, encodeOpening(Purpose::bus, 77, {}));
  ASSERT_EQ(challenge.read(pair.there.get()), Challenge::Progress::opened);
  EXPECT_EQ(challenge.read(pair.there.get()), Challenge::Progress::incomplete);
  Pair::say(pair.comes, "x");
  EXPECT_EQ(challenge.read(pair.there.get()), Challenge::Progress::stranger);
}

}  // namespace
}  // namespace falcon::transport
