#include "bootstrap/star_message.h"

#include "base/wire.h"

namespace falcon::bootstrap {

std::string StarMessage::encode() const {
  WireWriter writer;
  writer.put(kind).put(sequence).put(static_cast<std::int32_t>(rank)).put(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) writer.put(std::string_view(text));
  return writer.take();
}

bool StarMessage::decode(std::string_view bytes, StarMessage& message) {
  WireReader reader(bytes);
  message.kind = reader.get<Kind>();
  message.sequence = reader.get<std::uint64_t>();
  message.rank = reader.get<std::int32_t>();
  const auto count = reader.getCount(sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) message.texts.push_back(reader.getString());
  return reader.finished() && message.kind <= Kind::failed;
}

}  // namespace falcon::bootstrap
