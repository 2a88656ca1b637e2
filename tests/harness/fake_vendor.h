// What a test may ask of the fake vendor library (fake_vendor.cc), found with dlsym in the loaded copy.
#pragma once

#include <cstddef>

extern "C" {
/// Moves the calls since the last time, one a line ("AllReduce send=0x.. recv=0x.. ..."), into `text`.
void fakeVendorTakeLog(char* text, std::size_t size);
/// The next calls of operations and set-up return this, until it is set to 0 again.
void fakeVendorFail(int result);
/// What CommGetAsyncError tells.
void fakeVendorSetAsyncError(int result);
}
