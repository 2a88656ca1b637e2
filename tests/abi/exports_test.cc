// What the library file shows to the loader, read with binutils; and what loading it does, which is nothing.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "abi/names.h"

namespace falcon::abi {
namespace {

std::string outputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  char block[4096];
  for (size_t got; (got = fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, got);
  if (pclose(pipe) != 0) throw std::runtime_error(command + " failed");
  return text;
}

struct Symbol {
  std::string address;
  char kind = 0;  // nm's letter: T strong, W weak
};

std::map<std::string, Symbol> exportsOf(const std::string& library) {
  std::map<std::string, Symbol> symbols;
  std::istringstream lines(outputOf("nm -D --defined-only " + library));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Symbol symbol;
    words >> symbol.address >> symbol.kind >> name;
    symbols[name] = symbol;
  }
  return symbols;
}

std::set<std::string> dynamicEntries(const std::string& library, const std::string& tag) {
  std::set<std::string> values;
  std::istringstream lines(outputOf("readelf -dW " + library));
  for (std::string line; std::getline(lines, line);) {
    const auto open = line.find('['), close = line.find(']');
    if (line.find("(" + tag + ")") != std::string::npos && close != std::string::npos)
      values.insert(line.substr(open + 1, close - open - 1));
  }
  return values;
}

bool sanitized() {
  return std::string(FALCON_SANITIZE) != "";
}

TEST(Exports, AreTheFunctionsOfNcclTwiceAndTheExtensionAndTheOneForNvtxAndNothingElse) {
  auto symbols = exportsOf(FALCON_LIBRARY);
  const auto functions = vendorFunctions();
  EXPECT_EQ(functions.size(), 97u);
  for (const auto& [name, since] : functions) {
    ASSERT_TRUE(symbols.count(name)) << name;
    if (name == withoutTwin) {
      EXPECT_EQ(symbols[name].kind, 'T') << name;
      symbols.erase(name);
      continue;
    }
    const std::string twin = "p" + name;
    ASSERT_TRUE(symbols.count(twin)) << name;
    EXPECT_EQ(symbols[name].kind, 'W') << name;
    EXPECT_EQ(symbols[twin].kind, 'T') << name;
    EXPECT_EQ(symbols[name].address, symbols[twin].address) << name;
    symbols.erase(name);
    symbols.erase(twin);
  }
  for (const char* name : falconFunctionNames) {
    EXPECT_EQ(symbols[name].kind, 'T') << name;
    symbols.erase(name);
  }
  EXPECT_EQ(symbols["InitializeInjectionNvtx2"].kind, 'T');
  symbols.erase("InitializeInjectionNvtx2");
  for (const auto& [name, symbol] : symbols) ADD_FAILURE() << "exports " << name;
}

TEST(Exports, HaveTheVendorsNames) {
  const std::string vendor = FALCON_VENDOR_LIBRARY;
  if (vendor.empty()) GTEST_SKIP() << "the vendor's library is not on this machine";
  const auto ours = exportsOf(FALCON_LIBRARY);
  for (const auto& [name, symbol] : exportsOf(vendor)) {
    ASSERT_TRUE(ours.count(name)) << name;
    EXPECT_EQ(ours.at(name).kind, symbol.kind) << name;
  }
}

TEST(Library, IsNamedAsNcclAndLinkedAsNccl) {
  const std::filesystem::path file(FALCON_LIBRARY);
  EXPECT_EQ(file.filename(), "libnccl.so.2.32.3");
  EXPECT_THAT(dynamicEntries(FALCON_LIBRARY, "SONAME"), testing::ElementsAre("libnccl.so.2"));
  for (const char* name : {"libnccl.so", "libnccl.so.2"})
    EXPECT_TRUE(std::filesystem::equivalent(file.parent_path() / name, file)) << name;
}

TEST(Library, NeedsOnlyTheCLibrary) {
  if (sanitized()) GTEST_SKIP() << "sanitizer builds need their run-time";
  const std::set<std::string> allowed = {"libc.so.6",
                                         "libm.so.6",
                                         "libdl.so.2",
                                         "libpthread.so.0",
                                         "librt.so.1",
                                         "ld-linux-x86-64.so.2",
                                         "ld-linux-aarch64.so.1"};
  const auto needed = dynamicEntries(FALCON_LIBRARY, "NEEDED");
  EXPECT_TRUE(needed.count("libc.so.6"));
  for (const std::string& name : needed) EXPECT_TRUE(allowed.count(name)) << name;
}

TEST(Library, RunsFromGlibc234On) {
  if (sanitized()) GTEST_SKIP() << "sanitizer builds run where they were built";
  std::istringstream words(outputOf(std::string("readelf -VW ") + FALCON_LIBRARY));
  int versions = 0;
  for (std::string word; words >> word;) {
    if (word.rfind("GLIBC_", 0) != 0) {
      EXPECT_NE(word.rfind("GLIBCXX_", 0), 0u) << word;
      continue;
    }
    ++versions;
    int major = 0, minor = 0;
    ASSERT_GE(sscanf(word.c_str(), "GLIBC_%d.%d", &major, &minor), 2) << word;
    EXPECT_LE(std::make_pair(major, minor), std::make_pair(2, 34)) << word;
  }
  EXPECT_GT(versions, 0);
}

TEST(Library, HasNoSymbolVersionsOfItsOwn) {
  EXPECT_EQ(outputOf(std::string("readelf -VW ") + FALCON_LIBRARY).find("gnu.version_d"), std::string::npos);
}

// Entries of a folder of /proc/self, but for the descriptor that reads it.
size_t countIn(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// Every thread of the process has it, at the end of its stack: programs with small ones (an HTTP server's were) could
// make none any more. And a library that is opened late gets what is left of some 1600 bytes.
TEST(Library, TakesLittleOfEveryThread) {
  if (sanitized()) GTEST_SKIP() << "sanitizers use memory of their own";
  std::istringstream lines(outputOf("readelf -lW " FALCON_LIBRARY));
  std::string kind, offset, address, physical, fileSize, memorySize;
  std::size_t bytes = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> kind >> offset >> address >> physical >> fileSize >> memorySize && kind == "TLS")
      bytes = std::stoul(memorySize, nullptr, 16);
  }
  EXPECT_GT(bytes, 0u) << "there is such a segment";
  EXPECT_LE(bytes, 1600u);
}

TEST(Library, LoadingItDoesNothing) {
  // In a child, so that it is the first load whatever the other tests did.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const size_t files = countIn("/proc/self/fd"), threads = countIn("/proc/self/task");
    if (!dlopen(FALCON_LIBRARY, RTLD_NOW | RTLD_LOCAL)) _exit(1);
    if (countIn("/proc/self/fd") != files) _exit(2);
    if (countIn("/proc/self/task") != threads) _exit(3);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1 not loaded, 2 opens files, 3 starts threads";
}

}  // namespace
}  // namespace falcon::abi
