#include "bootstrap/join_message.h"

namespace falcon::bootstrap {
namespace {

constexpr int mostRanks = 1 << 20;

}  // namespace

std::string JoinRequest::encode() const {
  WireWriter writer;
  writer.put(static_cast<std::int32_t>(size));
  write(writer, member);
  writer.put(std::string_view(withdrawal));
  return writer.take();
}

bool JoinRequest::decode(std::string_view bytes, JoinRequest& request) {
  WireReader reader(bytes);
  request.size = reader.get<std::int32_t>();
  request.member = readMember(reader);
  request.withdrawal = reader.getString();
  return reader.finished() && request.size > 0 && request.size <= mostRanks &&
         (!request.member.address.empty() || !request.withdrawal.empty());
}

std::string JoinAnswer::encode() const {
  WireWriter writer;
  writer.put(kind).put(communicator);
  writer.put(static_cast<std::uint32_t>(members.size()));
  for (const Member& member : members) write(writer, member);
  writer.put(code).put(std::string_view(text));
  return writer.take();
}

bool JoinAnswer::decode(std::string_view bytes, JoinAnswer& answer) {
  WireReader reader(bytes);
  answer.kind = reader.get<Kind>();
  answer.communicator = reader.get<CommunicatorId>();
  const auto count = reader.getCount(1 + sizeof(std::uint32_t) + sizeof(std::int32_t));
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) answer.members.push_back(readMember(reader));
  answer.code = reader.get<ErrorCode>();
  answer.text = reader.getString();
  return reader.finished() && answer.kind <= Kind::over;
}

}  // namespace falcon::bootstrap
