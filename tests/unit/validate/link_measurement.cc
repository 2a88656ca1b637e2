// Waves and measurements on the wire.
#include "validate/link_measurement.h"

#include <gtest/gtest.h>

#include <random>

namespace falcon::validate {
namespace {

const Wave wave{.run = 12345678901,
                .lane = transport::Lane::probe,
                .links = {{9, {4, 7}, 0, 1}, {10, {3, 2}, 5, 0}},
                .brief = true};
const std::vector<LinkMeasurement> measurements = {
    {9, {4, 7}, transport::Medium::socket, LinkStatus::measured, 1 << 20, 0.25, 1e-4, 0.125},
    {9, {7, 4}, transport::Medium::sharedMemory, LinkStatus::timeout, 0, 0, -1, 0}};

TEST(LinkMessages, ComeBackAsTheyWere) {
  const auto sameWave = decodeWave(encode(wave));
  ASSERT_TRUE(sameWave);
  EXPECT_EQ(*sameWave, wave);
  const auto same = decodeMeasurements(encode(measurements));
  ASSERT_TRUE(same);
  EXPECT_EQ(*same, measurements);
  EXPECT_TRUE(decodeMeasurements(encode(std::vector<LinkMeasurement>{})));
}

TEST(LinkMessages, CutOrLengthenedOnesAreRefused) {
  for (const std::string& whole : {encode(wave), encode(measurements)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(decodeWave(whole.substr(0, length)));
      EXPECT_FALSE(decodeMeasurements(whole.substr(0, length)));
    }
    EXPECT_FALSE(decodeWave(whole + "x"));
    EXPECT_FALSE(decodeMeasurements(whole + "x"));
  }
  EXPECT_FALSE(decodeWave(encode(measurements)));
  EXPECT_FALSE(decodeMeasurements(encode(wave)));
}

TEST(LinkMessages, ImpossibleValuesAreRefused) {
  auto bad = measurements;
  bad[0].seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(decodeMeasurements(encode(bad)));
  bad = measurements;
  bad[0].seconds = 0;
  EXPECT_FALSE(decodeMeasurements(encode(bad)));
  bad = measurements;
  bad[0].waited = 0.3;
  EXPECT_FALSE(decodeMeasurements(encode(bad)));
  bad = measurements;
  bad[1].link = {3, 3};
  EXPECT_FALSE(decodeMeasurements(encode(bad)));
  bad = measurements;
  bad[1].status = static_cast<LinkStatus>(9);
  EXPECT_FALSE(decodeMeasurements(encode(bad)));
  auto badWave = wave;
  badWave.lane = transport::Lane::ring;
  EXPECT_FALSE(decodeWave(encode(badWave)));
  badWave = wave;
  badWave.links[0].to = -1;
  EXPECT_FALSE(decodeWave(encode(badWave)));
}

TEST(LinkMessages, WhatNoiseLeavesReadableIsStillSane) {
  std::mt19937 random(1);
  for (int draw = 0; draw < 20000; ++draw) {
    std::string bytes = encode(measurements);
    for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    const auto decoded = decodeMeasurements(bytes);
    if (!decoded) continue;
    for (const auto& measurement : *decoded) EXPECT_TRUE(measurement.link.from >= 0 && measurement.seconds >= 0);
  }
}

}  // namespace
}  // namespace falcon::validate
