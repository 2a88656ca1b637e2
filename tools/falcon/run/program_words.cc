#include "run/program_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/format.h"

namespace falcon::tools {
namespace {

// Stands for "--" while CLI11 parses, which would take what follows the dashes for positional options. No program has
// such a name.
constexpr char dashes[] = "\x01--";

}  // namespace

std::vector<const char*> withProgramMarked(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && (words[1] == std::string_view("run") || words[1] == std::string_view("exec"))) {
    const auto found = std::find(words.begin(), words.end(), std::string_view("--"));
    if (found != words.end()) *found = dashes;
  }
  return words;
}

std::vector<std::string> programOf(const char* command, std::vector<std::string> remaining) {
  const auto marked = std::find(remaining.begin(), remaining.end(), dashes);
  if (marked == remaining.begin() && marked != remaining.end())
    remaining.erase(marked);
  else if (!remaining.empty() && remaining[0].starts_with('-'))
    throw CLI::ValidationError(fmt::format(
        "{}: there is no such option of falcon {}; options of the program come after --", remaining[0], command));
  else if (marked != remaining.end())
    *marked = "--";  // the program's own
  return remaining;
}

}  // namespace falcon::tools
