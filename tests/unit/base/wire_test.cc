#include "base/wire.h"

#include <gtest/gtest.h>

#include <limits>

namespace falcon {
namespace {

enum class Colour : std::uint8_t { red = 1, green = 200 };

std::string sample() {
  WireWriter writer;
  return writer.put(std::int32_t{-5})
      .put(std::uint64_t{1} << 60)
      .put(2.5)
      .put(true)
      .put(Colour::green)
      .put(std::string_view("a\0b", 3))
      .put(std::string_view())
      .take();
}

TEST(Wire, GivesBackWhatWasPut) {
  const std::string bytes = sample();
  WireReader reader(bytes);
  EXPECT_EQ(reader.get<std::int32_t>(), -5);
  EXPECT_EQ(reader.get<std::uint64_t>(), std::uint64_t{1} << 60);
  EXPECT_EQ(reader.get<double>(), 2.5);
  EXPECT_TRUE(reader.get<bool>());
  EXPECT_EQ(reader.get<Colour>(), Colour::green);
  EXPECT_EQ(reader.getString(), std::string("a\0b", 3));
  EXPECT_FALSE(reader.finished());
  EXPECT_EQ(reader.getString(), "");
  EXPECT_TRUE(reader.finished());
}

TEST(Wire, CutAnywhereIsNoticedAndReadsAsZero) {
  const std::string bytes = sample();
  for (size_t length = 0; length < bytes.size(); ++length) {
    WireReader reader(std::string_view(bytes).substr(0, length));
    reader.get<std::int32_t>();
    reader.get<std::uint64_t>();
    reader.get<double>();
    reader.get<bool>();
    reader.get<Colour>();
    reader.getString();
    reader.getString();
    EXPECT_FALSE(reader.ok()) << length;
    EXPECT_FALSE(reader.finished());
    EXPECT_EQ(reader.get<std::int32_t>(), 0);
    EXPECT_EQ(reader.getString(), "");
  }
}

TEST(Wire, NeverTrustsALength) {
  const std::string hostile = WireWriter().put(std::numeric_limits<std::uint32_t>::max()).put(std::uint8_t{1}).take();
  WireReader asString(hostile), asCount(hostile), asBytes(hostile);
  EXPECT_EQ(asString.getString(), "");
  EXPECT_FALSE(asString.ok());
  EXPECT_EQ(asCount.getCount(8), 0u);
  EXPECT_FALSE(asCount.ok());
  EXPECT_EQ(asBytes.getCount(1), 0u);
  const std::string honest = WireWriter().put(std::uint32_t{3}).put(std::string_view("12345678")).take();
  WireReader reader(honest);
  EXPECT_EQ(reader.getCount(4), 3u);
  EXPECT_TRUE(reader.ok());
}

TEST(Wire, ReadsAnyByteAsABoolean) {
  const std::string bytes("\x00\x01\xff", 3);
  WireReader reader(bytes);
  EXPECT_FALSE(reader.get<bool>());
  EXPECT_TRUE(reader.get<bool>());
  EXPECT_TRUE(reader.get<bool>());
}

}  // namespace
}  // namespace falcon
