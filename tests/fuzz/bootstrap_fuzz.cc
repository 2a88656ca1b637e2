// What the members of a communicator and of the bus say to each other.
#include <optional>

#include "bootstrap/bus_frame.h"
#include "bootstrap/join_message.h"
#include "bootstrap/star_message.h"
#include "fuzz_target.h"

namespace falcon::fuzz {
namespace {

using namespace bootstrap;

template <class Message>
std::optional<Message> decoded(std::string_view bytes) {
  Message message;
  if (!Message::decode(bytes, message)) return std::nullopt;
  return message;
}
template <class Message>
void tryAs(std::string_view bytes) {
  requireRoundTrip(bytes, decoded<Message>, [](const Message& message) { return message.encode(); });
}

SocketAddress someAddress() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = 4000;
  address.sin_addr.s_addr = 0x0100007f;
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

}  // namespace

// The first byte says which reader gets the rest.
std::vector<std::string> seeds() {
  const Member member = thisMember(someAddress());
  std::vector<std::string> all;
  all.push_back('\0' + StarMessage{StarMessage::Kind::gathered, 5, 2, {"one", "", "three"}}.encode());
  all.push_back('\0' + StarMessage{StarMessage::Kind::left, 5, 2, {}}.encode());
  all.push_back('\1' + BusFrame{BusFrame::Kind::text, 1, everyone, "bytes"}.encode());
  all.push_back('\1' +
                BusFrame{.kind = BusFrame::Kind::welcome, .peers = {{1, someAddress()}, {2, someAddress()}}}.encode());
  all.push_back('\2' + JoinRequest{4, member}.encode());
  all.push_back('\2' + JoinRequest{4, thisMember({}), "why it does not come"}.encode());
  all.push_back('\3' +
                JoinAnswer{.kind = JoinAnswer::Kind::table, .communicator = 9, .members = {member, member}}.encode());
  all.push_back('\3' + JoinAnswer{.kind = JoinAnswer::Kind::refused, .text = "why"}.encode());
  all.push_back('\4' + BusContact{1, 2, someAddress(), someAddress()}.encode());
  return all;
}

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % 5) {
    case 0:
      return tryAs<StarMessage>(bytes);
    case 1:
      return tryAs<BusFrame>(bytes);
    case 2:
      return tryAs<JoinRequest>(bytes);
    case 3:
      return tryAs<JoinAnswer>(bytes);
    default:
      requireRoundTrip(bytes, BusContact::decode, [](const BusContact& contact) { return contact.encode(); });
  }
}

}  // namespace falcon::fuzz
