// Which numbers an option takes. CLI11's own rules let `nan` pass, read -1 as a huge unsigned number, and print limits
// that nobody can read.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>

namespace falcon::tools {

namespace number_rules {

inline std::string textOf(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", number);
  return text;
}

/// The number, or NaN where the text is not one.
inline double parse(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? number : std::nan("");
}

inline CLI::Validator make(bool (*holds)(double number, double low, double high), double low, double high,
                           const std::string& words) {
  return CLI::Validator(
      [=](std::string& text) {
        return holds(parse(text), low, high) ? std::string() : text + " is not a number " + words;
      },
      "", "");
}

}  // namespace number_rules

/// low <= number <= high; no infinity, no NaN.
inline CLI::Validator numberFrom(double low, double high) {
  using namespace number_rules;
  return make([](double number, double least, double most) { return number >= least && number <= most; }, low, high,
              "from " + textOf(low) + " to " + textOf(high));
}

/// low < number <= high; no infinity, no NaN.
inline CLI::Validator numberAbove(double low, double high) {
  using namespace number_rules;
  return make([](double number, double least, double most) { return number > least && number <= most; }, low, high,
              "above " + textOf(low) + ", up to " + textOf(high));
}

/// Not the empty text that a variable without a value makes in a script.
inline CLI::Validator notEmpty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? std::string("an empty name says nothing") : std::string(); }, "",
      "");
}

/// Digits only: neither a sign nor a fraction. CLI11 takes the largest number for one that is larger.
inline CLI::Validator wholeNumber() {
  return CLI::Validator(
      [](std::string& text) {
        const char* const end = text.data() + text.size();
        std::uint64_t number = 0;
        const auto [rest, problem] = std::from_chars(text.data(), end, number);
        if (problem == std::errc::result_out_of_range && rest == end)
          return text + " is too large, more than " + std::to_string(std::numeric_limits<std::uint64_t>::max());
        const bool whole = problem == std::errc() && rest == end;
        return whole ? std::string() : text + " is not a whole number, 0 or more";
      },
      "", "");
}

}  // namespace falcon::tools
