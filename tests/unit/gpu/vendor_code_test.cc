#include "gpu/vendor_code.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>

#include "base/applications_callback.h"

namespace falcon::gpu {
namespace {

const void* addressOf(auto* function) {
  return reinterpret_cast<const void*>(function);
}

TEST(CodeRange, HasWhatLiesInItOnly) {
  static const char room[9] = {};
  const char* const bytes = room + 1;
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

FALCON_CALLS_APPLICATION void callsBack(void (*callback)()) {
  callback();
  FALCON_CALLBACK_ENDS;
}

const void* caller = nullptr;

// A function and no lambda: what makes a pointer of a lambda may be a function of its own between the two.
void seesItsCaller() {
  caller = __builtin_return_address(0);
}

// The last call of a callback may be a jump, which leaves the address that the callback was called from.
TEST(VendorCode, IsNotThatWhichCallsTheApplicationBack) {
  const auto library = loadVendorLibrary(FALCON_FAKE_VENDOR);
  ASSERT_TRUE(library);
  callsBack(&seesItsCaller);
  ASSERT_TRUE(isWhereCallbacksAreCalled(caller));
  EXPECT_EQ(vendorCalling(caller), nullptr);
  EXPECT_FALSE(isWhereCallbacksAreCalled(addressOf(&loadVendorLibrary)));
}

// A program may have any number of them.
TEST(VendorCode, IsKnownByThousandsOfPlacesThatCall) {
  const auto library = loadVendorLibrary(FALCON_FAKE_VENDOR);
  ASSERT_TRUE(library);
  void* const made = mmap(nullptr, 8 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(made, MAP_FAILED);
  const auto* const code = static_cast<const char*>(made);
  for (int place = 0; place < 8 << 20; place += 1024) ASSERT_EQ(vendorCalling(code + place), nullptr);
  EXPECT_EQ(vendorCalling(addressOf((*library)->functions.allReduce)), (*library)->handle);
  munmap(made, 8 << 20);
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
