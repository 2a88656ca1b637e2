#include "gpu/vendor_code.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>

namespace falcon::gpu {
namespace {

const void* addressOf(auto* function) {
  return reinterpret_cast<const void*>(function);
}

TEST(CodeRange, HasWhatLiesInItOnly) {
  static const char bytes[8] = {};
  CodeRange range;
  EXPECT_FALSE(range.has(bytes));
  range.set(reinterpret_cast<std::uintptr_t>(bytes), reinterpret_cast<std::uintptr_t>(bytes + 4));
  EXPECT_TRUE(range.has(bytes));
  EXPECT_TRUE(range.has(bytes + 3));
  EXPECT_FALSE(range.has(bytes + 4));
  EXPECT_FALSE(range.has(bytes - 1));
  EXPECT_FALSE(range.has(nullptr));
}

TEST(VendorCode, IsThatOfTheLibraryThatWasLoaded) {
  const auto library = loadVendorLibrary(FALCON_FAKE_VENDOR);
  ASSERT_TRUE(library);
  for (int time = 0; time < 2; ++time) {  // looked at, and known
    EXPECT_EQ(vendorCalling(addressOf((*library)->functions.allReduce)), (*library)->handle);
    EXPECT_EQ(vendorCalling(addressOf(&std::getenv)), nullptr);
    // What jumps into this library, as the vendor's functions that it calls may.
    EXPECT_EQ(vendorCalling(addressOf(&loadVendorLibrary)), (*library)->handle);
  }
}

TEST(VendorCode, HasNoCodeThatWasMadeWhileTheProgramRan) {
  void* const made = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(made, MAP_FAILED);
  for (int time = 0; time < 2; ++time) EXPECT_EQ(vendorCalling(made), nullptr);
  munmap(made, 4096);
}

TEST(FunctionByName, IsThatOfTheLibraryThatIsAsked) {
  const auto library = loadVendorLibrary(FALCON_FAKE_VENDOR);
  ASSERT_TRUE(library);
  FunctionByName reduce("pncclAllReduce"), none("pncclOfNobody");
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(reduce.in((*library)->handle), addressOf((*library)->functions.allReduce));
    EXPECT_EQ(none.in((*library)->handle), nullptr);
  }
  void* const other = dlopen("libc.so.6", RTLD_LAZY);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(reduce.in(other), nullptr);
  EXPECT_EQ(reduce.in((*library)->handle), addressOf((*library)->functions.allReduce));
  dlclose(other);
}

}  // namespace
}  // namespace falcon::gpu
