// The words of a command line behind "--": a program and its arguments, which no option of ours may take.
#pragma once

#include <string>
#include <vector>

namespace falcon::tools {

/// The words of the command line. Where they are of a command that starts a program, "--" is marked, for programOf().
std::vector<const char*> withProgramMarked(int argc, const char* const* argv);

/// What CLI11 left alone of `falcon <command>`: the program and its arguments, with "--" in front of it or not. Throws
/// CLI::ValidationError: an option that the command does not have.
std::vector<std::string> programOf(const char* command, std::vector<std::string> remaining);

}  // namespace falcon::tools
