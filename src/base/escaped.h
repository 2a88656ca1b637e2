// Text that others chose (names of hosts, jobs, communicators and ranges) as each exit takes it. Whatever the bytes
// are, what comes out is valid there.
#pragma once

#include <string>
#include <string_view>

namespace falcon {

/// Valid UTF-8: each byte that is part of no character is U+FFFD, the replacement character.
std::string validUtf8(std::string_view text);

/// A JSON string, with its quotes. Control characters are escaped, also those that JSON would allow.
std::string jsonString(std::string_view text);

/// The value of a Prometheus label, without quotes.
std::string labelValue(std::string_view text);

/// HTML or SVG, between tags or in a quoted attribute. Control characters, which neither may have, are U+FFFD too.
std::string htmlText(std::string_view text);

/// For a terminal, which obeys control characters: they are shown as \x1b, also those of two bytes (U+0080 to U+009F).
std::string terminalText(std::string_view text);

}  // namespace falcon
