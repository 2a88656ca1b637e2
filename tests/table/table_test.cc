// Every function of NCCL before every release, in both shapes: what a program calls is what the vendor gets, but for
// what differences.txt names.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "abi/names.h"

namespace falcon::table {
namespace {

/// By its name: "twin", and how the vendor's own code comes to it.
std::map<std::string, std::string> functionsOf(const std::string& release) {
  std::ifstream file(FALCON_VENDOR_FACTS "/" + release + ".names");
  std::map<std::string, std::string> functions;
  for (std::string name, twin, use; file >> name >> twin >> use;) functions[name] = use;
  return functions;
}

/// The releases whose functions are written down, oldest first.
std::vector<std::string> releases() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(FALCON_VENDOR_FACTS))
    if (entry.path().extension() == ".names") found.insert(entry.path().stem());
  return {found.begin(), found.end()};
}

/// What the preload library stands before.
const std::set<std::string>& interposed() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    void* const library = dlopen(FALCON_PRELOAD, RTLD_NOW | RTLD_LOCAL);
    for (const auto& function : abi::vendorFunctions())
      if (dlsym(library, function.name.c_str())) all.insert(function.name);
    return all;
  }();
  return names;
}

/// With Falcon on, what differs without it does, too.
std::map<std::string, std::string> differencesIn(const std::string& setting) {
  std::ifstream file(FALCON_TABLE_DIFFERENCES);
  std::map<std::string, std::string> differences;
  if (setting == "replaced-on") differences = differencesIn("replaced");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string where, name;
    if (!(words >> where >> name) || where != setting) continue;
    const std::size_t begin = line.find(name) + name.size() + 1;
    differences[name] = line.substr(begin, line.find(" | ") - begin);
  }
  return differences;
}

struct Setting {
  std::string name, environment, arguments;
  std::string shape = "vendors";  ///< whose handles a program gets
};
const Setting settings[] = {
    {"without", "", "plausible"},
    {"preloaded-off", "NCCL_FALCON=0 LD_PRELOAD=" FALCON_PRELOAD, "plausible"},
    {"preloaded-off", "NCCL_FALCON=0 LD_PRELOAD=" FALCON_PRELOAD, "wild"},
    {"preloaded-on", "NCCL_FALCON=1 LD_PRELOAD=" FALCON_PRELOAD, "plausible"},
    {"preloaded-on", "NCCL_FALCON=1 LD_PRELOAD=" FALCON_PRELOAD, "wild"},
    {"replaced", "-u NCCL_FALCON", "plausible", "own"},
    {"replaced-on", "NCCL_FALCON=1", "plausible", "own"},
};

/// Lines of the program: a function's name, and what became of its call. `arguments`: instead of the setting's.
std::map<std::string, std::string> run(const Setting& setting, const std::string& release,
                                       const std::string& arguments = "") {
  const std::string folder = FALCON_TABLE_RELEASES "/" + release, vendor = folder + "/libnccl.so.2";
  const std::string loaded =
      setting.shape == "own" ? std::filesystem::path(FALCON_OWN_LIBRARY).parent_path().string() : folder;
  // -u words come first.
  const std::string command = "env " + setting.environment +
                              " NCCL_FALCON_ENGINE=vendor NCCL_FALCON_VENDOR_LIBRARY=" + vendor +
                              " NCCL_FALCON_JOB=table-test-" + std::to_string(getpid()) + " LD_LIBRARY_PATH=" + loaded +
                              " " FALCON_TABLE_PROGRAM " " + vendor + " " + setting.shape + " " +
                              (arguments.empty() ? setting.arguments : arguments) + " 2>/dev/null";
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return {};
  std::map<std::string, std::string> verdicts;
  char line[1024];
  while (fgets(line, sizeof line, pipe)) {
    const std::string text(line, std::strcspn(line, "\n"));
    verdicts[text.substr(0, text.find(' '))] = text.substr(text.find(' ') + 1);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return verdicts;
}

class Table : public testing::TestWithParam<std::string> {
 protected:
  ~Table() override {
    std::filesystem::remove_all("/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/table-test-" +
                                std::to_string(getpid()));
  }
};

TEST_P(Table, EveryFunctionReachesTheVendorUnchanged) {
  const auto functions = functionsOf(GetParam());
  ASSERT_FALSE(functions.empty());
  for (const Setting& setting : settings) {
    const auto verdicts = run(setting, GetParam());
    const auto differences = differencesIn(setting.name);
    const std::string where = setting.name + ", " + setting.arguments;
    EXPECT_EQ(verdicts.size(), abi::vendorFunctions().size()) << where;
    for (const auto& [name, since] : abi::vendorFunctions()) {
      const bool isThere = functions.count(name) != 0;
      const bool isOurs = setting.name != "without" && interposed().count(name) != 0;
      const auto found = verdicts.find(name);
      ASSERT_NE(found, verdicts.end()) << where << ": " << name << " was not called";
      if (!isThere && setting.shape == "own") {
        // What has no result code to refuse with answers that there is nothing.
        EXPECT_TRUE(found->second == "refused" || found->second == "answered by ourselves" ||
                    (name == "ncclCommInitRankScalable" && found->second.starts_with("becomes ncclCommInitRankConfig")))
            << where << ": " << name << " " << found->second;
        continue;
      }
      if (!isThere) {
        EXPECT_EQ(found->second, isOurs ? "refused" : "not there") << where << ": " << name;
        continue;
      }
      // What no library could make sense of is not watched, so the core asks nothing.
      const auto different = differences.find(name);
      const bool asExpected =
          found->second == "same" && (different == differences.end() || setting.arguments == "wild");
      EXPECT_TRUE(asExpected || (different != differences.end() && found->second == different->second))
          << where << ": " << name << " " << found->second;
    }
    for (const auto& [name, verdict] : verdicts)
      EXPECT_TRUE(functionsOf(releases().back()).count(name)) << name << " is in our header, and in no release";
  }
}

// The vendor's code calls some of its own functions by their exported names, so they come to us. Told by the return
// address, which whoever jumps instead of calling does not leave.
TEST_P(Table, OfWhatTheVendorCallsItselfLittleIsOurs) {
  std::set<std::string> called;
  for (const auto& [name, use] : functionsOf(GetParam())) {
    if (!interposed().count(name)) continue;
    EXPECT_NE(use, "tail-called") << name << " would be taken for a call of the application's";
    if (use == "called") called.insert(name);
  }
  const std::set<std::string> known = {"ncclBroadcast", "ncclGetUniqueId", "ncclGroupStart", "ncclGroupEnd"};
  for (const std::string& name : called) EXPECT_TRUE(known.count(name)) << name;
  EXPECT_THAT(called, testing::IsSupersetOf({"ncclBroadcast", "ncclGetUniqueId"}));
}

// Also where its calls would be watched, or are answered by ourselves.
TEST_P(Table, WhatTheVendorCallsItselfReachesItUntouched) {
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, use] : functionsOf(GetParam()))
    if (use != "-") {
      names += " " + name;
      ++count;
    }
  ASSERT_GT(count, 4u);
  for (const Setting& setting : settings) {
    const auto verdicts = run(setting, GetParam(), "itself" + names);
    EXPECT_EQ(verdicts.size(), count) << setting.name;
    for (const auto& [name, verdict] : verdicts) EXPECT_EQ(verdict, "same") << setting.name << ": " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, Table, testing::ValuesIn(releases()), [](const auto& release) {
  std::string name = release.param;
  for (char& letter : name)
    if (letter == '.') letter = '_';
  return name;
});

bool isNccls(const std::string& name) {
  return name.rfind("nccl", 0) == 0 || name.rfind("pnccl", 0) == 0;
}

// Whoever stands before us may take a name of ours: our own code must not go by it.
TEST(OurLibraries, CallNoneOfTheirOwnExportsByName) {
  for (const char* library : {FALCON_PRELOAD, FALCON_OWN_LIBRARY}) {
    const std::string command = std::string("readelf -rW ") + library;
    FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_TRUE(pipe);
    int lines = 0;
    char line[1024];
    while (fgets(line, sizeof line, pipe)) {
      std::istringstream words(line);
      std::string offset, info, type, value, name;
      words >> offset >> info >> type >> value >> name;
      ++lines;
      EXPECT_FALSE(isNccls(name)) << library << " has a " << type << " of " << name;
    }
    EXPECT_EQ(pclose(pipe), 0) << command;
    EXPECT_GT(lines, 10) << command;
  }
}

/// The instructions of every function in a library, by its name without a version.
std::map<std::string, std::vector<std::string>> codeOf(const std::string& library) {
  std::map<std::string, std::vector<std::string>> functions;
  FILE* const pipe = popen(("objdump -d --no-show-raw-insn " + library).c_str(), "r");
  if (!pipe) return functions;
  std::vector<std::string>* function = nullptr;
  char line[4096];
  while (fgets(line, sizeof line, pipe)) {
    const std::string text(line, std::strcspn(line, "\n"));
    const std::size_t begin = text.find(" <"), colon = text.find('\t');
    if (!text.empty() && text.back() == ':' && begin != std::string::npos)
      function = &functions[text.substr(begin + 2, text.size() - begin - 4)];
    else if (function && colon != std::string::npos)
      function->push_back(text.substr(colon + 1));
  }
  EXPECT_EQ(pclose(pipe), 0) << library;
  return functions;
}

// Who called is told by the return address, which is taken in the exported function: nobody else may call that, and it
// must not jump on to the vendor's, whose address would then not be the one that is returned to.
TEST(OurLibraries, LeaveTheAddressOfWhoeverCalledThem) {
  std::set<std::string> looked;
  for (const char* library : {FALCON_PRELOAD, FALCON_OWN_LIBRARY}) {
    const bool forwardsOnly = library == std::string(FALCON_PRELOAD);
    for (const auto& [label, code] : codeOf(library)) {
      const std::string name = label.substr(0, label.find('.'));  // what the compiler put aside is part of it
      if (isNccls(name)) looked.insert(library + name);
      for (const std::string& instruction : code) {
        std::istringstream words(instruction);
        std::string word, target;
        words >> word;
        if (word == "bnd" || word == "notrack") words >> word;
        const bool jumps = word == "jmp", calls = word == "call" || word == "callq";
        if (!jumps && !calls) continue;
        std::getline(words, target);
        const std::size_t begin = target.find('<');
        const std::string to = begin == std::string::npos ? "" : target.substr(begin + 1, target.find('>') - begin - 1);
        // name+0x1c is inside of it.
        const bool isAnothers = isNccls(to) && to.find('+') == std::string::npos && to.substr(0, to.find('.')) != name;
        EXPECT_FALSE(isAnothers) << library << ": " << label << " has " << instruction;
        const bool leaves = forwardsOnly && isNccls(name) && jumps && to.rfind(name, 0) != 0;
        EXPECT_FALSE(leaves) << library << ": " << name << " leaves by " << instruction;
      }
    }
  }
  EXPECT_GT(looked.size(), interposed().size() + 90) << "objdump shows too few functions";
}

}  // namespace
}  // namespace falcon::table
