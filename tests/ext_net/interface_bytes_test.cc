#include "socket/interface_bytes.h"

#include <gtest/gtest.h>

namespace falcon::net {
namespace {

// As the kernel writes it: a name of six letters or more begins the line.
constexpr const char* text =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo:  11      2    0    0    0     0          0         0       12       2    0    0    0     0       0        "
    "  0\n"
    "w25996:15320     230    0    0    0     0          0         0  9908653     256    0    0    0     0       0     "
    "0\n"
    " eth0:1:      1       0    0    0    0     0          0         0        9       0    0    0    0     0   0      "
    "0\n"
    "  cut: 1 2 3\n";

TEST(SentBytes, AreFoundByTheWholeName) {
  EXPECT_EQ(sentBytes(text, "lo"), 12u);
  EXPECT_EQ(sentBytes(text, "w25996"), 9908653u);
  EXPECT_FALSE(sentBytes(text, "l"));
  EXPECT_FALSE(sentBytes(text, "w2599"));
  EXPECT_FALSE(sentBytes(text, "face |bytes"));
  EXPECT_FALSE(sentBytes(text, ""));
  EXPECT_FALSE(sentBytes("", "lo"));
}

TEST(SentBytes, OfALineThatIsTooShortAreNotKnown) {
  EXPECT_FALSE(sentBytes(text, "cut"));
}

}  // namespace
}  // namespace falcon::net
