#include "transport/chunk_size.h"

#include <gtest/gtest.h>

namespace falcon::transport {
namespace {

constexpr std::size_t defaultBuffer = 1 << 20;

TEST(ChunkSize, RingsAndTreesUseTheWholeBufferWhateverTheRanks) {
  for (const int ranks : {2, 64, 4096})
    for (const Lane lane : {Lane::ring, Lane::tree, Lane::test, Lane::probe})
      EXPECT_EQ(chunkBytesFor(lane, defaultBuffer, ranks), defaultBuffer / chunkSlots);
}

TEST(ChunkSize, MessagesOfFewRanksUseTheWholeBufferToo) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    EXPECT_EQ(chunkBytesFor(Lane::peerToPeer, defaultBuffer, ranks), defaultBuffer / chunkSlots);
}

TEST(ChunkSize, MessagesToAllStayWithinTheirMemory) {
  for (const std::size_t buffer : {std::size_t{4096}, defaultBuffer, std::size_t{1} << 28})
    for (int ranks = 2; ranks <= 4096; ++ranks) {
      const std::size_t chunk = chunkBytesFor(Lane::peerToPeer, buffer, ranks);
      ASSERT_LE(chunk, buffer / chunkSlots);
      ASSERT_LE(chunk, chunkBytesFor(Lane::peerToPeer, buffer, ranks - 1));
      // Never less than what is asked for or a page.
      ASSERT_GE(chunk, std::min<std::size_t>(buffer / chunkSlots, 4096));
      if (chunk <= 4096) continue;
      // Two connections to each peer: eight chunks here, four of the peer's there.
      ASSERT_LE(2 * 12 * chunk * static_cast<std::size_t>(ranks - 1), messageBuffers);
    }
}

TEST(ChunkSize, CollectivesAmongAllStayWithinAQuarterOfIt) {
  for (const std::size_t buffer : {std::size_t{4096}, defaultBuffer, std::size_t{1} << 28})
    for (int ranks = 2; ranks <= 4096; ++ranks) {
      const std::size_t chunk = chunkBytesFor(Lane::direct, buffer, ranks);
      ASSERT_LE(chunk, mostDirectChunk);
      ASSERT_LE(chunk, buffer / chunkSlots);
      ASSERT_GE(chunk, std::min<std::size_t>(buffer / chunkSlots, 4096));
      if (chunk <= 4096) continue;
      ASSERT_LE(12 * chunk * static_cast<std::size_t>(ranks - 1), messageBuffers / 4);
    }
}

}  // namespace
}  // namespace falcon::transport
