// Ends that do not do what they should.
#include <poll.h>
#include <sys/socket.h>

#include "ext_net/ends.h"
#include "socket/frame.h"
#include "socket/socket_listener.h"
#include "socket/socket_network.h"
#include "socket/socket_receiver.h"

namespace falcon::net::test {
namespace {

FileDescriptor dialled(const SocketAddress& to) {
  FileDescriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(socket.get(), to.get(), to.length()), 0);
  return socket;
}

void put(int socket, std::span<const std::byte> bytes) {
  ASSERT_EQ(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}
void put(int socket, const Frame& frame) {
  put(socket, std::as_bytes(std::span(&frame, 1)));
}

/// Hung up on, in the time that it takes.
bool isEnded(int socket, Listener& listener) {
  return waitFor([&] {
    EXPECT_TRUE(listener.accept() && true);
    char byte = 0;
    const auto got = recv(socket, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  });
}

class Strangers : public testing::Test {
 protected:
  Strangers() {
    EXPECT_TRUE(over_.devices());
    listener_ = std::move(*over_.listen(0, handle_.get()));
  }
  SocketAddress address() { return readHandle(handle_.get())->address; }

  Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  SocketNetwork over_;
  HandleBytes handle_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(Strangers, AreHungUpOnByAListener) {
  const FileDescriptor stranger = dialled(address());
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  put(stranger.get(), std::as_bytes(std::span(request)));
  EXPECT_TRUE(isEnded(stranger.get(), *listener_));
}

TEST_F(Strangers, WithAnotherSecretAreHungUpOn) {
  auto known = *readHandle(handle_.get());
  known.secret.fill(std::byte{1});
  HandleBytes wrong;
  write(known, wrong.get());
  const auto error = whyNotConnected(over_, wrong.get(), [&] { EXPECT_FALSE(*listener_->accept()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote);
  EXPECT_NE(error->message().find("does not know the secret"), std::string::npos) << error->message();
}

TEST_F(Strangers, ThatAreManyDoNotKeepOutWhoBelongs) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(dialled(address()));
    static_cast<void>(listener_->accept());
  }
  std::unique_ptr<Connection> sender, receiver;
  EXPECT_TRUE(connectBoth(over_, 0, handle_.get(), *listener_, sender, receiver));
}

TEST_F(Strangers, WhoListenWhereARankShouldAreNotBelieved) {
  const FileDescriptor impostor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress any = *SocketAddress::parseNumeric("127.0.0.1:0");
  ASSERT_EQ(bind(impostor.get(), any.get(), any.length()), 0);
  ASSERT_EQ(listen(impostor.get(), 4), 0);
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  ASSERT_EQ(getsockname(impostor.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);
  auto known = *readHandle(handle_.get());
  known.address = SocketAddress(reinterpret_cast<const sockaddr*>(&bound), length);
  HandleBytes wrong;
  write(known, wrong.get());
  ASSERT_TRUE(over_.connect(0, wrong.get()));
  const FileDescriptor victim(accept4(impostor.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(victim);
  put(victim.get(), Bytes(200, std::byte{7}));
  const auto error = whyNotConnected(over_, wrong.get());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote) << error->message();
}

TEST_F(Strangers, WhoAcceptAndSayNothingAreGivenUpInTime) {
  const Setting limit("NCCL_FALCON_INIT_TIMEOUT", "1s");
  const auto error = whyNotConnected(over_, handle_.get());  // nobody calls accept()
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote);
  EXPECT_NE(error->message().find("NCCL_FALCON_INIT_TIMEOUT"), std::string::npos) << error->message();
}

TEST_F(Strangers, ThatAreGoneAreAnError) {
  HandleBytes handle;
  over_.listen(0, handle.get())->reset();
  const auto error = whyNotConnected(over_, handle.get());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote) << error->message();
}

/// A receiver whose peer has proven itself and then sends what it likes.
class Peer : public testing::TestWithParam<const char*> {
 protected:
  Peer() { meet(); }
  /// A new connection.
  void meet() {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    receiver_.reset();
    peer_.reset(pair[0]);
    std::vector<FileDescriptor> sockets;
    sockets.emplace_back(pair[1]);
    receiver_ = std::move(*SocketReceiver::make(0, std::move(sockets), "the peer"));
  }
  Result<std::size_t> received(std::size_t room = 1000) {
    room_.resize(room);
    const auto request = receiver_->start(room_.data(), room_.size(), nullptr);
    if (!request) return request.error();
    return finish(*request);
  }

  Setting io_{"NCCL_FALCON_NET_IO", GetParam()};
  FileDescriptor peer_;
  std::unique_ptr<Connection> receiver_;
  Bytes room_;
};
INSTANTIATE_TEST_SUITE_P(Io, Peer, testing::Values("epoll", "io_uring"),
                         [](const auto& given) { return std::string(given.param) == "epoll" ? "Epoll" : "Ring"; });

Frame frameOf(std::uint64_t total) {
  return {.total = total, .length = total};
}

TEST_P(Peer, ThatIsSoundIsBelieved) {
  put(peer_.get(), frameOf(5));
  put(peer_.get(), Bytes(5, std::byte{9}));
  const auto got = received();
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(*got, 5u);
  EXPECT_EQ(room_[4], std::byte{9});
  EXPECT_EQ(room_[5], std::byte{0});
}

TEST_P(Peer, WhoseFramesAreWrongEndsTheConnectionAndNothingElse) {
  Frame magic = frameOf(5), message = frameOf(5), outside = frameOf(5), beyond = frameOf(5), longer = frameOf(5);
  magic.magic ^= 1;
  message.message = 0xffffffff;
  outside.offset = 1;
  beyond.offset = ~std::uint64_t{0};
  longer.length = ~std::uint64_t{0};
  for (const Frame& wrong : {magic, message, outside, beyond, longer}) {
    meet();
    put(peer_.get(), wrong);
    put(peer_.get(), Bytes(64));
    const auto got = received();
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::remote) << got.error().message();
    EXPECT_NE(got.error().message().find("the peer"), std::string::npos);
    const auto again = received();  // it stays so
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message(), got.error().message());
  }
}

TEST_P(Peer, ThatSendsMoreThanThereIsRoomForIsToldApart) {
  put(peer_.get(), frameOf(1001));
  const auto got = received(1000);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::invalidUsage);
  EXPECT_NE(got.error().message().find("1001 bytes where 1000"), std::string::npos) << got.error().message();
}

TEST_P(Peer, ThatEndsInAFrameOrAMessageIsLost) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, sizeof(Frame), sizeof(Frame) + 3}) {
    meet();
    Bytes all(sizeof(Frame) + 100);
    const Frame frame = frameOf(100);
    std::memcpy(all.data(), &frame, sizeof frame);
    if (bytes > 0) put(peer_.get(), std::span(all).first(bytes));
    peer_.reset();
    const auto got = received();
    ASSERT_FALSE(got) << bytes;
    EXPECT_EQ(got.error().code(), ErrorCode::remote) << got.error().message();
  }
}

TEST(LostConnection, IsNoticedByBothEnds) {
  const Setting interface("NCCL_SOCKET_IFNAME", "lo");
  SocketNetwork over;
  ASSERT_TRUE(over.devices());
  {
    Ends ends(over);
    Bytes room(100);
    const auto receive = ends.receiver->start(room.data(), room.size(), nullptr);
    ends.sender.reset();
    const auto got = finish(*receive, Seconds(5));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::remote);
  }
  Ends ends(over);
  Bytes data(50'000'000);
  const auto send = ends.sender->start(data.data(), data.size(), nullptr);
  ends.receiver.reset();
  const auto sent = finish(*send, Seconds(5));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), ErrorCode::remote);
}

}  // namespace
}  // namespace falcon::net::test
