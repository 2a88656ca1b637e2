#include "exec/loaded_library.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <thread>

#include "base/format.h"
#include "base/parameters.h"
#include "base/shared_library.h"
#include "machine/program.h"

namespace falcon::tools {
namespace {

constexpr int oldestVersion = 21800;

bool isProgram(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// Where the shell would find the program.
std::optional<std::string> inPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return isProgram(name) ? std::optional(name) : std::nullopt;
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/" + name; isProgram(path)) return path;
  return std::nullopt;
}

/// What the loader would load for `file`, a program or a library: its own list, without running anything of it.
struct Linked {
  std::string nccl;                 ///< "": none that it would find
  bool lacksNccl = false;           ///< it is linked to one that is not found
  std::vector<std::string> others;  ///< libraries that lie in other folders than the system's
};
Linked linkedBy(const std::string& file) {
  Linked linked;
  const auto listed = runProgram({{"ldd", file}});
  std::istringstream lines(listed ? *listed : "");
  for (std::string line; std::getline(lines, line);) {
    // One that is preloaded stands there by its path alone, and comes before all others.
    const auto arrow = line.find("=> "), start = line.find_first_not_of(" \t");
    const std::string rest = line.substr(arrow == std::string::npos ? start : arrow + 3);
    const std::string path = rest.starts_with('/') ? rest.substr(0, rest.find(" (")) : "";
    if (line.find("libnccl.so") != std::string::npos) {
      if (linked.nccl.empty()) linked.nccl = path;
      linked.lacksNccl = linked.lacksNccl || path.empty();
    } else if (!path.empty() && !path.starts_with("/lib") && !path.starts_with("/usr/lib")) {
      linked.others.push_back(path);
    }
  }
  return linked;
}

/// NCCL's version text stands in every library and program that has NCCL in it.
bool hasNcclInside(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string mark = "NCCL version %d.%d.%d";
  const std::string otherMark = "NCCL version 2.";
  std::string block(1 << 20, '\0'), kept;
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    const std::string text = kept + block.substr(0, static_cast<std::size_t>(stream.gcount()));
    if (text.find(mark) != std::string::npos || text.find(otherMark) != std::string::npos) return true;
    kept = text.substr(text.size() - std::min(text.size(), mark.size()));
  }
  return false;
}

/// Of `file`, and of what it is linked to: who has NCCL in it; "": nobody.
std::string whoHasNcclInside(const std::string& file, const Linked& linked) {
  if (hasNcclInside(file)) return file;
  for (const std::string& other : linked.others)
    if (hasNcclInside(other)) return other;
  return "";
}

/// @param how  words before the file's name, in an answer
LoadedLibrary ncclOf(const std::string& file, const std::string& how) {
  Linked linked = linkedBy(file);
  if (!linked.nccl.empty()) return {std::move(linked.nccl), how};
  if (linked.lacksNccl) return {"", "in " + file};
  const std::string inside = whoHasNcclInside(file, linked);
  return {"", "in " + (inside.empty() ? file : inside), !inside.empty()};
}

/// An interpreter, and no program of a name that begins as its: nothing but the interpreter is asked, by running it.
bool isPython(const std::string& path) {
  static const std::regex name("python([0-9]+(\\.[0-9]+)*[a-z]*)?(-dbg)?");
  return std::regex_match(std::filesystem::path(path).filename().string(), name);
}

/// As `import torch` would find it; the interpreter says where its packages are.
LoadedLibrary libraryOfPython(const std::string& interpreter) {
  const auto said = runProgram({{interpreter, "-c", "import sys; print('\\n'.join(p for p in sys.path if p))"}});
  std::istringstream folders(said ? *said : "");
  std::vector<std::string> all;
  for (std::string folder; std::getline(folders, folder);) all.push_back(folder);
  for (const std::string& folder : all) {
    const std::string torch = folder + "/torch/lib/libtorch_cuda.so";
    if (access(torch.c_str(), R_OK) != 0) continue;
    return ncclOf(torch, "linked by " + torch);
  }
  for (const std::string& folder : all)
    if (const std::string path = folder + "/nvidia/nccl/lib/libnccl.so.2"; access(path.c_str(), R_OK) == 0)
      return {path, "a package of " + interpreter};
  return {};
}

std::string firstLineOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string line;
  std::getline(stream, line);
  return line.substr(0, 256);
}

bool isEnv(const std::string& path) {
  return std::filesystem::path(path).filename() == "env";
}

/// The program that `env` starts, behind its own options and the variables that it sets; empty: there is none.
std::string startedByEnv(std::vector<std::string> words) {
  constexpr std::string_view split = "--split-string=";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    const bool apart = word == "-S" || word == "--split-string";
    if (apart || word.starts_with("-S") || word.starts_with(split)) {
      const std::size_t from = apart ? i + 1 : i;
      if (from >= words.size()) return "";
      std::istringstream text(apart ? words[from] : word.substr(word.starts_with("-S") ? 2 : split.size()));
      const std::vector<std::string> inside{std::istream_iterator<std::string>(text), {}};
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(from) + 1);
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), inside.begin(), inside.end());
      --i;
      continue;
    }
    if (word == "-u" || word == "-C" || word == "--unset" || word == "--chdir")
      ++i;
    else if (!word.starts_with('-') && word.find('=') == std::string::npos)
      return word;
  }
  return "";
}

/// Who runs with more rights than the caller's: the loader ignores what is to be preloaded.
bool isPrivileged(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return false;
  const bool otherUser = (facts.st_mode & S_ISUID) && facts.st_uid != getuid();
  const bool otherGroup = (facts.st_mode & S_ISGID) && facts.st_gid != getgid();
  return otherUser || otherGroup || (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0);
}

/// CUDA's driver takes seconds on a machine with many GPUs.
constexpr Nanoseconds openingLimit = 30s;

/// One that does not is killed.
bool endsWithin(pid_t child, Nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const pid_t ended = waitpid(child, nullptr, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(1ms);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return false;
}

struct Answer {
  LibraryFacts facts;
  char problem[512];
};

/// Found by way of `library`, a function may be that of a library which it is linked to, or which `falcon` is.
template <class Function>
bool hasItself(void* library, const char* name, Function& function) {
  link_map *its = nullptr, *own = nullptr;
  Dl_info ignored;
  return findFunction(library, name, function) && dlinfo(library, RTLD_DI_LINKMAP, &own) == 0 &&
         dladdr1(reinterpret_cast<const void*>(function), &ignored, reinterpret_cast<void**>(&its), RTLD_DL_LINKMAP) !=
             0 &&
         its == own;
}

void look(const std::string& path, Answer& answer) {
  std::error_code error;
  if (path.find('/') != std::string::npos && !std::filesystem::is_regular_file(path, error))
    return void(snprintf(answer.problem, sizeof answer.problem, "is no file"));
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) return void(snprintf(answer.problem, sizeof answer.problem, "cannot be opened: %s", dlerror()));
  int (*getVersion)(int*) = nullptr;
  void* falcon = nullptr;
  answer.facts.isFalcon = hasItself(library, "ncclFalconGetVersion", falcon);
  if (!hasItself(library, "pncclGetVersion", getVersion) || getVersion(&answer.facts.version) != 0)
    return void(snprintf(answer.problem, sizeof answer.problem, "is no library of NCCL"));
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  int (*start)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  if (!driver || !findFunction(driver, "cuInit", start) || !findFunction(driver, "cuDeviceGetCount", count)) return;
  answer.facts.hasDriver = true;
  if (start(0) != 0 || count(&answer.facts.devices) != 0) answer.facts.devices = 0;
}

}  // namespace

std::vector<std::string> interpreterOf(const std::string& firstLine) {
  std::vector<std::string> words;
  if (!firstLine.starts_with("#!")) return words;
  std::istringstream text(firstLine.substr(2));
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

Result<LoadedLibrary> libraryOf(const std::vector<std::string>& program) {
  const std::string name = isEnv(program[0]) ? startedByEnv(program) : program[0];
  if (name.empty()) return Error::invalidArgument("{} starts no program here", program[0]);
  auto path = inPath(name);
  if (!path) return Error::invalidArgument("there is no program '{}' in PATH", name);
  if (isPrivileged(*path))
    return Error::invalidUsage(
        "{} runs with rights that its caller does not have (set-uid, set-gid or file capabilities): the loader ignores "
        "LD_PRELOAD there, so Falcon cannot watch it",
        *path);
  // Some installations start the interpreter by a script of its name.
  for (int depth = 0; depth < 4 && !isPython(*path); ++depth) {
    const std::vector<std::string> interpreter = interpreterOf(firstLineOf(*path));
    if (interpreter.empty()) break;
    const auto next = inPath(isEnv(interpreter[0]) ? startedByEnv(interpreter) : interpreter[0]);
    if (!next) return Error::invalidArgument("{} wants {}, which cannot be found", *path, interpreter[0]);
    path = next;
  }
  if (isPython(*path)) return libraryOfPython(*path);
  return ncclOf(*path, "linked");
}

Result<LibraryFacts> factsOf(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return Error::system("no pipe can be had");
  const pid_t child = fork();
  if (child < 0) return Error::system("no process can be started");
  if (child == 0) {
    Answer answer{};
    dup2(STDERR_FILENO, STDOUT_FILENO);  // what the library prints is no part of our answer
    look(path, answer);
    const bool said = write(ends[1], &answer, sizeof answer) == sizeof answer;
    _exit(said ? 0 : 1);
  }
  close(ends[1]);
  Answer answer{};
  const bool hasEnded = endsWithin(child, openingLimit);
  // It has said so before it ended, or never does: a process that it has started may hold the pipe.
  pollfd said{ends[0], POLLIN, 0};
  const bool heard = hasEnded && poll(&said, 1, 0) > 0 && read(ends[0], &answer, sizeof answer) == sizeof answer;
  close(ends[0]);
  if (!hasEnded)
    return Error::invalidArgument("{} is not opened within {:.0f} s: something in it waits", path,
                                  seconds(openingLimit));
  if (!heard) return Error::invalidArgument("{} ends the process that opens it", path);
  if (answer.problem[0]) return Error::invalidArgument("{} {}", path, static_cast<const char*>(answer.problem));
  if (answer.facts.version < oldestVersion)
    return Error::invalidArgument("{} is version {}; Falcon watches {} and later", path, answer.facts.version,
                                  oldestVersion);
  return answer.facts;
}

std::string describe(const std::string& path, const LibraryFacts& facts) {
  const auto version = fmt::format("{}.{}.{}", facts.version / 10000, facts.version / 100 % 100, facts.version % 100);
  const std::string devices = facts.devices > 0 ? fmt::format("{} CUDA device(s)", facts.devices)
                              : facts.hasDriver ? "the CUDA driver shows no device"
                                                : "no CUDA driver";
  if (facts.isFalcon) {
    const std::string_view engine = parameters::engineWords[parameters::engine.value()];
    const bool vendors = engine == "vendor" || (engine == "auto" && facts.devices > 0);
    return fmt::format("{}: NCCL Falcon's own, version {}; it watches by itself, and {} data ({}{})", path, version,
                       vendors ? "the vendor's library moves the" : "the host engine moves the",
                       engine == "auto" ? "" : fmt::format("{}={}, ", parameters::engine.name(), engine), devices);
  }
  return fmt::format("{}: version {}; Falcon stands before it and watches, and it moves the data itself ({})", path,
                     version, devices);
}

}  // namespace falcon::tools
