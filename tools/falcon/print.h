// What `falcon` says to people. It may land on a terminal, which obeys control characters, and names in it (of jobs,
// hosts, communicators, ranges) are what others chose.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/escaped.h"

namespace falcon::tools {

template <class Argument>
using Shown = std::conditional_t<std::is_convertible_v<const Argument&, std::string_view>, std::string, Argument>;

template <class Argument>
Shown<Argument> shown(const Argument& argument) {
  if constexpr (std::is_convertible_v<const Argument&, std::string_view>)
    return terminalText(argument);
  else
    return argument;
}

/// As fmt::print, with every text among the arguments as terminalText() has it: only the format commands the terminal.
template <class... Arguments>
void print(std::FILE* file, fmt::format_string<Shown<Arguments>...> format, const Arguments&... arguments) {
  fmt::print(file, format, shown(arguments)...);
}

/// Text of several lines, made elsewhere: the ends of its lines stay, all else is as above.
inline void printLines(std::FILE* file, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    fmt::print(file, "{}{}", terminalText(text.substr(0, end)), end == text.npos ? "" : "\n");
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

}  // namespace falcon::tools
