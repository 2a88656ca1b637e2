#include "gpu/vendor_code.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace falcon::gpu {
namespace {

const void* addressOf(auto* function) {
  return reinterpret_cast<const void*>(function);
}

TEST(CodeRange, HasTheCodeOfOneObject) {
  CodeRange range;
  EXPECT_FALSE(range.has(addressOf(&loadVendorLibrary)));
  range.setToObjectOf(addressOf(&loadVendorLibrary));
  EXPECT_TRUE(range.has(addressOf(&loadVendorLibrary)));
  EXPECT_TRUE(range.has(addressOf(&tellCallsOf)));
  EXPECT_FALSE(range.has(addressOf(&std::getenv)));
  EXPECT_FALSE(range.has(nullptr));
}

TEST(VendorCode, IsKnownWhenTheLibraryIsLoaded) {
  const auto library = loadVendorLibrary(FALCON_FAKE_VENDOR);
  ASSERT_TRUE(library);
  EXPECT_TRUE(isVendorsOwn(addressOf((*library)->functions.allReduce)));
  EXPECT_FALSE(isVendorsOwn(addressOf(&std::getenv)));
  EXPECT_EQ(functionOfVendor("pncclAllReduce"), addressOf((*library)->functions.allReduce));
  EXPECT_EQ(functionOfVendor("pncclOfNobody"), nullptr);
}

}  // namespace
}  // namespace falcon::gpu
