#include "base/escaped.h"

#include <algorithm>

#include "base/format.h"

namespace falcon {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

/// Bytes of the UTF-8 character that the text begins with; 0 where it begins with none (RFC 3629: no detours, no
/// surrogates, nothing above U+10FFFF).
std::size_t characterBytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const auto follows = [&](std::size_t at, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(at) >= low && byte(at) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

/// Joins what `shown` makes of each character; of each byte that is part of none it is asked for the replacement's.
template <class Shown>
std::string eachCharacter(std::string_view text, Shown shown) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = characterBytes(text);
    out += shown(bytes > 0 ? text.substr(0, bytes) : replacement);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

/// C0, DEL and C1.
bool isControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

}  // namespace

std::string validUtf8(std::string_view text) {
  return eachCharacter(text, [](std::string_view character) { return character; });
}

std::string jsonString(std::string_view text) {
  return '"' +
         eachCharacter(text,
                       [](std::string_view character) -> std::string {
                         if (character == "\"" || character == "\\") return '\\' + std::string(character);
                         if (isControl(character))
                           return fmt::format("\\u{:04x}", static_cast<unsigned char>(character.back()));
                         return character == replacement ? "\\ufffd" : std::string(character);
                       }) +
         '"';
}

std::string labelValue(std::string_view text) {
  return eachCharacter(text, [](std::string_view character) -> std::string {
    if (character == "\n") return "\\n";
    return (character == "\"" || character == "\\" ? "\\" : "") + std::string(character);
  });
}

std::string htmlText(std::string_view text) {
  return eachCharacter(text, [](std::string_view character) -> std::string_view {
    if (character == "&") return "&amp;";
    if (character == "<") return "&lt;";
    if (character == ">") return "&gt;";
    if (character == "\"") return "&quot;";
    if (character == "'") return "&#39;";
    const bool blank = character == "\n" || character == "\t";
    return isControl(character) && !blank ? replacement : character;
  });
}

std::string terminalText(std::string_view text) {
  return eachCharacter(text, [](std::string_view character) -> std::string {
    if (!isControl(character)) return std::string(character);
    return fmt::format("\\x{:02x}", static_cast<unsigned char>(character.back()));
  });
}

}  // namespace falcon
