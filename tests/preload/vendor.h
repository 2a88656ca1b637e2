// What a test may ask of the stand-in for the vendor's library (vendor.cc).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

extern "C" {
/// Moves the calls since the last time, one a line ("vendor: AllReduce 0x.. .."), into `text`.
void vendorTakeLog(char* text, std::size_t size);
/// Handles of children that were not written on return are written now.
void vendorWriteHandles();
}
