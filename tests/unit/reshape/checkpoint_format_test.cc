#include "reshape/checkpoint_format.h"

#include <gtest/gtest.h>

#include <set>

#include "base/format.h"
#include "reshape/checksum.h"

namespace falcon::reshape {
namespace {

const Manifest some{1'234'567'890'123, 8, 2, 4, 0x77, {{"a", 1, 0xabc}, {"layer-0.weights", 1ULL << 40, ~0ULL}}};

TEST(Manifest, ComesBackAsItWentOut) {
  for (const Manifest& manifest : {some, Manifest{}}) {
    const auto back = decodeManifest(encode(manifest));
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(*back, manifest);
  }
}

TEST(Manifest, OfBeforeThereWereRunsIsRead) {
  // As the version before wrote it.
  const std::string text = "falcon-checkpoint 1\njob 5 4 2 1\nbuffer 8 00000000000000ab dice\n";
  const auto older = decodeManifest(text + fmt::format("end {:016x}\n", Checksum::of(text)));
  ASSERT_TRUE(older) << older.error().message();
  EXPECT_EQ(older->iteration, 5u);
  EXPECT_EQ(older->run, 0u);
}

TEST(Manifest, EveryCutAndEveryChangeIsRefused) {
  const std::string whole = encode(some);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decodeManifest(whole.substr(0, length)) && length + 1 < whole.size()) << length;
  for (std::size_t at = 0; at + 1 < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] ^= 1;
    EXPECT_FALSE(decodeManifest(changed)) << at;
  }
  EXPECT_FALSE(decodeManifest(whole + "buffer 1 0 more\n"));
}

TEST(CheckpointNames, AreReadBackAndOthersAreNone) {
  for (const std::uint64_t iteration : {0ULL, 7ULL, 999'999'999'999ULL, 123'456'789'012'345ULL}) {
    const std::string path = folderOf("f", iteration);
    EXPECT_EQ(iterationOf(path.substr(2)), iteration);
  }
  for (const char* other : {"iteration-", "iteration-12", "iteration-00000000000x", "restart.json", ""})
    EXPECT_FALSE(iterationOf(other)) << other;
}

TEST(ReplicatedParts, HaveOneWriterEach) {
  for (const int data : {1, 2, 3, 4})
    for (const int pipeline : {1, 2, 3})
      for (const int tensor : {1, 2}) {
        std::multiset<std::string> written;
        for (int rank = 0; rank < data * pipeline * tensor; ++rank) {
          const Place place{rank,
                            data * pipeline * tensor,
                            data,
                            pipeline,
                            tensor,
                            rank / tensor / pipeline,
                            rank / tensor % pipeline,
                            rank % tensor,
                            true};
          if (writesReplicated(place)) written.insert(replicatedPart(place));
        }
        EXPECT_EQ(written.size(), static_cast<std::size_t>(pipeline * tensor));
        EXPECT_EQ(std::set<std::string>(written.begin(), written.end()).size(), written.size());
      }
}

}  // namespace
}  // namespace falcon::reshape
