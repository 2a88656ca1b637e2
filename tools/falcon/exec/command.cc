#include "exec/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/own_files.h"
#include "base/parameters.h"
#include "exec/chained_profiler.h"
#include "exec/loaded_library.h"
#include "print.h"
#include "run/program_words.h"

namespace falcon::tools {
namespace {

struct ExecOptions {
  bool print = false;
  bool check = false;
  std::vector<std::string> program;
};

constexpr const char* preloadName = "libnccl-falcon.so";

/// Where the build and an installation have it.
Result<std::string> preloadLibrary() {
  if (auto path = ownLibrary(preloadName)) {
    if (path->find_first_of(" :\t\n") == std::string::npos) return std::move(*path);
    return Error::invalidUsage(
        "'{}' cannot be preloaded: LD_PRELOAD is a list that ends words at spaces and colons. Move Falcon to a folder "
        "without any, or start it through a link to it (ln -s)",
        *path);
  }
  return Error::system("{} is neither beside {} nor in its lib/nccl-falcon: install Falcon as a whole", preloadName,
                       ownFolder());
}

std::string asShellWord(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%") ==
          std::string::npos)
    return word;
  std::string text = "'";
  for (const char letter : word) letter == '\'' ? text += "'\\''" : text += letter;
  return text + "'";
}

/// What NCCL_FALCON says; null: nothing, so that exec sets it.
const char* wantedFalcon() {
  const char* const wanted = std::getenv("NCCL_FALCON");
  return wanted && *wanted ? wanted : nullptr;
}

/// Before what is preloaded already, and once: `falcon exec` may start a program that starts another by it.
std::string before(const std::string& library, const char* others) {
  if (!others || !*others) return library;
  const std::string list = others;
  const bool first = list == library || list.starts_with(library + ":") || list.starts_with(library + " ");
  return first ? list : library + ":" + list;
}

int check(const std::vector<std::string>& program) {
  if (const auto preloaded = preloadLibrary(); !preloaded) {
    print(stderr, "falcon exec: {}\n", preloaded.error().message());
    return toolFailed;
  }
  const auto library = libraryOf(program);
  if (!library) {
    print(stderr, "falcon exec: {}\n", library.error().message());
    return toolFailed;
  }
  if (library->compiledIn) {
    print(stdout, "NCCL is compiled into it ({}): nothing can stand before it, so Falcon cannot watch this program\n",
          library->how);
    return toolFailed;
  }
  if (library->path.empty()) {
    print(
        stdout,
        "no NCCL was found that {} would load (one that it opens by a path of its own, or that a program has which it "
        "starts, is not seen)\n",
        program[0]);
    return toolFailed;
  }
  const auto facts = factsOf(library->path);
  if (!facts) {
    print(stdout, "{}\n", facts.error().message());
    return toolFailed;
  }
  print(stdout, "{} ({})\n", describe(library->path, *facts), library->how);
  if (const char* const off = wantedFalcon(); off && std::strcmp(off, "1") != 0)
    print(stdout, "but NCCL_FALCON={} is set, which keeps it off: unset it, or set it to 1\n", off);
  return healthy;
}

int run(const ExecOptions& options) {
  if (options.check) return check(options.program);
  const auto library = preloadLibrary();
  if (!library) {
    print(stderr, "falcon exec: {}\n", library.error().message());
    return toolFailed;
  }
  const std::string preload = before(*library, std::getenv("LD_PRELOAD"));
  std::vector<std::pair<std::string, std::string>> variables{{"LD_PRELOAD", preload}};
  const char* const wanted = wantedFalcon();
  if (!wanted) variables.emplace_back("NCCL_FALCON", "1");
  if (!wanted || std::strcmp(wanted, "1") == 0)
    if (const auto both = chainedProfiler(options.program)) {
      variables.emplace_back(parameters::profilerPlugin.name(), both->first);
      variables.emplace_back(parameters::chainedProfiler.name(), both->second);
    }
  if (options.print) {
    fmt::print("env");
    for (const auto& [name, value] : variables) fmt::print(" {}={}", name, asShellWord(value));
    for (const std::string& word : options.program) fmt::print(" {}", asShellWord(word));
    fmt::print("\n");
    return healthy;
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : options.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::fflush(stdout);
  execvp(words[0], words.data());
  print(stderr, "falcon exec: {} cannot be started: {}\n", options.program[0], std::strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

}  // namespace

void addExecCommand(CLI::App& app, int& exitCode) {
  auto* command = app.add_subcommand("exec", "Starts a program with Falcon before the NCCL that it loads");
  auto options = std::make_shared<ExecOptions>();
  command->footer(
      "Example: falcon exec -- torchrun --nproc-per-node 8 train.py\n"
      "It sets LD_PRELOAD and NCCL_FALCON=1 (unless that is set) and becomes the program. A profiler plugin that\n"
      "NCCL_PROFILER_PLUGIN names is chained behind Falcon's.");
  command->prefix_command();
  auto* print =
      command->add_flag("--print", options->print, "Says what it would set, as a shell line, and starts nothing");
  command
      ->add_flag("--check", options->check,
                 "Says which NCCL the program would load and whether Falcon can serve it; starts nothing of it")
      ->excludes(print);
  command->callback([command, options, &exitCode] {
    options->program = programOf("exec", command->remaining());
    if (options->program.empty())
      throw CLI::ValidationError("a program is wanted behind --, e.g. falcon exec -- python train.py");
    exitCode = run(*options);
  });
}

}  // namespace falcon::tools
