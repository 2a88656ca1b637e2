// The 128 bytes of ncclUniqueId, and the text of NCCL_COMM_ID.
#include "bootstrap/unique_id.h"

#include <algorithm>

#include "fuzz_target.h"

namespace falcon::fuzz {
namespace {

using bootstrap::UniqueId;

void tryBytes(std::string_view input) {
  std::array<char, 128> bytes{};
  std::copy_n(input.begin(), std::min(input.size(), bytes.size()), bytes.begin());
  const auto id = UniqueId::parse(bytes);
  if (!id) return;
  const auto again = UniqueId::parse(id->bytes());
  require(static_cast<bool>(again), "an id that was accepted is accepted again");
  require(again->key == id->key && again->secret == id->secret && again->address.text() == id->address.text(),
          "an id keeps its meaning");
  require(again->hostMemory == id->hostMemory, "and what memory it is for");
}

void tryText(std::string_view text) {
  const auto address = SocketAddress::parseNumeric(text);
  if (!address) return;
  require(!address->empty(), "an accepted address is one");
  const auto again = SocketAddress::parseNumeric(address->text());
  require(again && again->text() == address->text(), "an address keeps its meaning");
}

}  // namespace

// The first byte says which reader gets the rest.
std::vector<std::string> seeds() {
  UniqueId id;
  id.address = *SocketAddress::parseNumeric("10.1.0.2:4000");
  id.key = 77;
  const auto bytes = id.bytes();
  return {'\0' + std::string(bytes.begin(), bytes.end()), "\001127.0.0.1:4000", "\001[fe80::1]:65535", "\001[::1]:0"};
}

void run(std::string_view input) {
  if (input.empty()) return;
  return input[0] % 2 == 0 ? tryBytes(input.substr(1)) : tryText(input.substr(1));
}

}  // namespace falcon::fuzz
