#include "reshape/checkpoint_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/reshape/power_cut_storage.h"

namespace falcon::reshape {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Names = PowerCutStorage::Names;

const Place place{.rank = 3, .ranks = 4};
const std::string folder = "checkpoints", part = "rank-3";

/// Two buffers, whose content says of which iteration it is.
struct Content {
  std::vector<int> weights = std::vector<int>(3000);
  std::vector<char> step = std::vector<char>(7);

  explicit Content(int iteration = 0) { fill(iteration); }
  void fill(int iteration) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = iteration * 10'000 + static_cast<int>(i);
    std::fill(step.begin(), step.end(), static_cast<char>(iteration));
  }
  std::vector<StateBuffer> buffers() {
    return {{"step", reinterpret_cast<std::byte*>(step.data()), step.size()},
            {"weights", reinterpret_cast<std::byte*>(weights.data()), weights.size() * sizeof(int)}};
  }
  bool operator==(const Content&) const = default;
};

Status writeOf(Storage& storage, int iteration, int filledAs) {
  Content content(filledAs);
  StagedPart staged;
  stage(content.buffers(), place, static_cast<std::uint64_t>(iteration), part, staged);
  return write(storage, folder, staged);
}

Status writeOf(Storage& storage, int iteration) {
  return writeOf(storage, iteration, iteration);
}

std::vector<std::uint64_t> found(Storage& storage) {
  Content content;
  std::vector<std::uint64_t> iterations;
  const auto all = iterationsOf(storage, folder, part, content.buffers(), place);
  for (const Found& each : *all) iterations.push_back(each.iteration);
  return iterations;
}

TEST(CheckpointPart, ComesBackAsItWent) {
  PowerCutStorage storage;
  ASSERT_TRUE(writeOf(storage, 5));
  ASSERT_TRUE(writeOf(storage, 17));
  EXPECT_THAT(found(storage), ElementsAre(17, 5));
  Content loaded;
  const auto buffers = loaded.buffers();
  for (const int iteration : {5, 17}) {
    const auto number = static_cast<std::uint64_t>(iteration);
    EXPECT_TRUE(verify(storage, folder, number, part));
    ASSERT_TRUE(load(storage, folder, number, part, buffers));
    EXPECT_EQ(loaded, Content(iteration));
  }
}

TEST(CheckpointPart, StagingCopiesOnceAndKeepsItsMemory) {
  Content content(1);
  StagedPart staged;
  stage(content.buffers(), place, 1, part, staged);
  const std::byte* const memory = staged.content.get();
  content.fill(2);
  PowerCutStorage storage;
  ASSERT_TRUE(write(storage, folder, staged));
  Content loaded;
  ASSERT_TRUE(load(storage, folder, 1, part, loaded.buffers()));
  EXPECT_EQ(loaded, Content(1)) << "training went on before it was written";
  stage(content.buffers(), place, 2, part, staged);
  EXPECT_EQ(staged.content.get(), memory);
}

/// Whatever step is the last one before the power fails: the newest that is whole is right, and one that was said to be
/// written is there.
TEST(CheckpointPart, APowerCutAtAnyStepLeavesTheNewestWholeOne) {
  for (const Names names : {Names::lost, Names::kept, Names::onlyTheNewestKept})
    for (const int second : {2, 1}) {  // 1: it replaces one of the same iteration, with other content
      const int filledAs = second == 2 ? 2 : 9;
      std::size_t steps = 0;
      for (std::size_t cut = 0; cut <= steps; ++cut) {
        PowerCutStorage storage;
        ASSERT_TRUE(writeOf(storage, 0));
        ASSERT_TRUE(writeOf(storage, 1));
        storage.cutAt(cut);
        const bool written = static_cast<bool>(writeOf(storage, second, filledAs));
        EXPECT_EQ(written, !storage.isCut());
        steps = std::max(steps, storage.steps().size());
        SCOPED_TRACE(storage.isCut() ? storage.steps().back() : "the end");
        storage.restart(names);
        const auto whole = found(storage);
        ASSERT_FALSE(whole.empty());
        const auto newest = static_cast<int>(whole.front());
        EXPECT_GE(newest, second == 2 ? 1 : 0);
        if (written) {
          EXPECT_EQ(newest, second);
        }
        Content loaded;
        ASSERT_TRUE(load(storage, folder, whole.front(), part, loaded.buffers()));
        const bool isNew = newest == second && loaded == Content(filledAs);
        EXPECT_TRUE(isNew || (!written && loaded == Content(newest)));
        if (written) break;
      }
      EXPECT_GE(steps, 12u) << "a step that is not seen is not tested";
    }
}

TEST(CheckpointPart, EveryChangedByteIsFound) {
  const std::string file = folderOf(folder, 4) + "/" + part;
  PowerCutStorage storage;
  ASSERT_TRUE(writeOf(storage, 4));
  const auto stateBytes = *storage.size(file + ".state"), manifestBytes = *storage.size(file + ".manifest");
  Content content;
  for (std::size_t at = 0; at < stateBytes; at += 97) {
    storage.spoil(file + ".state", at);
    const Status good = verify(storage, folder, 4, part);
    ASSERT_FALSE(good);
    EXPECT_NE(good.error().message().find("was changed"), std::string::npos) << good.error().message();
    EXPECT_FALSE(load(storage, folder, 4, part, content.buffers()));
    storage.spoil(file + ".state", at);
  }
  for (std::size_t at = 0; at < manifestBytes; ++at) {
    storage.spoil(file + ".manifest", at);
    EXPECT_THAT(found(storage), IsEmpty()) << at;
    storage.spoil(file + ".manifest", at);
  }
  EXPECT_THAT(found(storage), ElementsAre(4));
}

TEST(CheckpointPart, OfAnotherJobDoesNotCountAndSaysWhy) {
  PowerCutStorage storage;
  ASSERT_TRUE(writeOf(storage, 4));
  Content content;
  std::string told;
  const auto ask = [&](const std::vector<StateBuffer>& buffers, const Place& at) {
    return *iterationsOf(storage, folder, part, buffers, at, [&](const std::string& why) { told = why; });
  };
  auto buffers = content.buffers();
  buffers[1].bytes -= 4;
  EXPECT_THAT(ask(buffers, place), IsEmpty());
  EXPECT_THAT(told, testing::HasSubstr("it has weights of 12000 bytes where weights of 11996 is registered"));
  buffers.pop_back();
  EXPECT_THAT(ask(buffers, place), IsEmpty());
  EXPECT_THAT(ask(content.buffers(), {.rank = 3, .ranks = 5}), IsEmpty());
  EXPECT_THAT(told, testing::HasSubstr("a job of 4 ranks wrote it, this one has 5"));
  EXPECT_THAT(ask(content.buffers(), {.rank = 3, .ranks = 4, .pipelineSize = 2}), IsEmpty());
}

TEST(CheckpointPart, TheNewestStayAndWhatIsNewerThanAllHave) {
  PowerCutStorage storage;
  for (const int iteration : {1, 2, 3, 4, 5, 6}) ASSERT_TRUE(writeOf(storage, iteration));
  prune(storage, folder, part, {5}, 2);
  EXPECT_THAT(found(storage), ElementsAre(6, 5, 4));
  EXPECT_FALSE(storage.has(folderOf(folder, 3) + "/" + part + ".state"));
  prune(storage, folder, part, {6}, 1);
  EXPECT_THAT(found(storage), ElementsAre(6));
}

TEST(CheckpointPart, OfThoseThatOthersLackNoneIsKeptInPlaceOfAnother) {
  PowerCutStorage storage;
  for (const int iteration : {1, 2, 3, 4, 5, 6}) ASSERT_TRUE(writeOf(storage, iteration));
  prune(storage, folder, part, {2, 5}, 2);
  EXPECT_THAT(found(storage), ElementsAre(6, 5, 2)) << "3 and 4 are not on all ranks";
  prune(storage, folder, part, {}, 1);
  EXPECT_THAT(found(storage), ElementsAre(6, 5, 2)) << "nobody knows of any";
}

TEST(CheckpointPart, WhatWasLeftInTheMakingGoesWithTheOldOnes) {
  PowerCutStorage storage;
  ASSERT_TRUE(writeOf(storage, 1));
  storage.cutAt(4);
  ASSERT_FALSE(writeOf(storage, 2));
  storage.restart(Names::kept);
  ASSERT_TRUE(storage.has(folderOf(folder, 2) + "/" + part + ".state.draft"));
  ASSERT_TRUE(writeOf(storage, 3));
  prune(storage, folder, part, {3}, 2);
  EXPECT_THAT(found(storage), ElementsAre(3, 1)) << "what is not whole is not one of those kept";
  EXPECT_FALSE(storage.has(folderOf(folder, 2) + "/" + part + ".state.draft"));
}

}  // namespace
}  // namespace falcon::reshape
