#include "socket/interface_bytes.h"

#include "base/text.h"

namespace falcon::net {
namespace {

constexpr std::size_t sentColumn = 8;

}  // namespace

std::optional<std::uint64_t> sentBytes(std::string_view allInterfaces, std::string_view interface) {
  for (const std::string_view line : split(allInterfaces, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    const auto begin = name.find_first_not_of(' ');
    if (begin == std::string_view::npos || name.substr(begin) != interface) continue;
    std::vector<std::string_view> words = split(line.substr(colon + 1), ' ');
    std::erase(words, std::string_view());
    return words.size() > sentColumn ? leadingNumber<std::uint64_t>(words[sentColumn]) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace falcon::net
