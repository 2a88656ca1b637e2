#include "shape.h"

#include <regex>
#include <utility>

namespace falcon::documents {

std::string shapeOf(const std::string& text) {
  // In this order: what is made of numbers, numbers, and what is made of the marks of numbers.
  static const std::pair<std::regex, const char*> marks[] = {
      {std::regex(R"(\[[-0-9, ]*\])"), "[ranks]"},
      {std::regex(R"(\branks (\d+(, \d+)+|\d+ to \d+))"), "[ranks]"},
      {std::regex(R"(\[ranks\] \((data parallel|tensor parallel|pipeline|whole job)[^()]*\))"), "[ranks]"},
      {std::regex(R"(\b\d+\.\d+\.\d+\.\d+\b)"), "<address>"},
      {std::regex(R"(\bprocess \d+ on [^\s,;]+)"), "process # on <host>"},
      {std::regex(R"(\b(once|twice)\b)"), "# times"},
      {std::regex(R"(\d+(\.\d+)?(e[-+]?\d+)?)"), "#"},
      {std::regex(R"(# <?-> #)"), "<link>"},
      {std::regex(R"(#(-#)+)"), "<order>"},
      {std::regex(R"(#(\+#)+)"), "<split>"},
      {std::regex(R"(# m?s\b)"), "<time>"},
      {std::regex(R"(# [KMG]B/s\b)"), "<rate>"},
      {std::regex(R"(\bwere\b)"), "was"},
      {std::regex(R"(# ([a-z-]{2,}[^s])s\b)"), "# $1"},
  };
  std::string shape = text;
  for (const auto& [what, mark] : marks) shape = std::regex_replace(shape, what, mark);
  return shape;
}

std::vector<std::string> clausesOf(const std::string& text) {
  static const std::regex border(R"(, |; |: | \(|\))");
  const std::string shape = shapeOf(text);
  std::vector<std::string> clauses;
  for (std::sregex_token_iterator clause(shape.begin(), shape.end(), border, -1), end; clause != end; ++clause)
    if (clause->length() > 0) clauses.push_back(*clause);
  return clauses;
}

}  // namespace falcon::documents
