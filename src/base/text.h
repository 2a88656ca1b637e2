// Reading the kernel's text files.
#pragma once

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace falcon {

/// The parts between the separators; nothing follows the last one of a text that ends with it.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// The number that the text begins with.
template <class Number>
std::optional<Number> leadingNumber(std::string_view text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// A whole file; what came of it before it could not be read any further, "" where it cannot be read at all.
inline std::string readText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // an iterator throws where reading fails, as it does of the speed of an interface without a
                         // link
  return text.str();
}

}  // namespace falcon
