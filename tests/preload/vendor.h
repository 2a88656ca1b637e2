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
/// How many calls a profiler plugin was told of, and how many it did not want to know of.
void vendorTellCalls(int* told, int* untold);
}
