#include "ucx/ucx_facts.h"

#include <ucp/api/ucp.h>

#include "base/wire.h"

namespace falcon::net {
namespace {

constexpr std::uint32_t magic = 0x31585546;  // "FUX1"

}  // namespace

UcxFacts UcxFacts::ours() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  UcxFacts facts;
  facts.major = major;
  facts.minor = minor;
  return facts;
}

std::string UcxFacts::text() const {
  return WireWriter().put(magic).put(major).put(minor).put(firstTag).put(std::string_view(address)).take();
}

std::optional<UcxFacts> UcxFacts::read(std::string_view text) {
  WireReader reader(text);
  UcxFacts facts;
  const auto its = reader.get<std::uint32_t>();
  facts.major = reader.get<std::uint32_t>();
  facts.minor = reader.get<std::uint32_t>();
  facts.firstTag = reader.get<std::uint64_t>();
  facts.address = reader.getString();
  const bool isSound = reader.finished() && its == magic && !facts.address.empty();
  return isSound ? std::optional(std::move(facts)) : std::nullopt;
}

}  // namespace falcon::net
