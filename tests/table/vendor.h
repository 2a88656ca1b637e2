// What the table's program asks of its stand-in for the vendor's library (vendor.cc).
#pragma once

#include <cstddef>

extern "C" {
/// An argument as the vendor got it.
struct VendorArgument {
  char name[32];
  unsigned char bytes[128];  ///< of the value
  std::size_t size;
  unsigned char content[160];  ///< of the structure that it points to, where that is one whose content is the caller's
  std::size_t contentSize;
  unsigned char answer[128];  ///< what the vendor wrote where it points to
  std::size_t answerSize;
};
struct VendorCall {
  char function[48];
  VendorArgument arguments[16];
  int count;
  unsigned char result[16];
  std::size_t resultSize;
};

/// Copies the calls since the last time, at most `most`, oldest first; gives how many there were.
int vendorTakeCalls(VendorCall* calls, int most);
/// Calls one of its functions by its exported name, as the vendor's own code does, with nothing but zeros. 0: it has
/// none of that name.
int vendorCallItself(const char* function);
/// What functions with a result code answer from now on.
void vendorAnswer(int result);
/// The handle that was made last for a rank of this number.
void* vendorHandleOfRank(int rank);
}
