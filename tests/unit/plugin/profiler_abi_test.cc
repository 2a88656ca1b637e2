// Our declarations of NCCL's profiler plugin interface against sizes and places measured with its own headers (2.27 to
// 2.30), of version 7 with a reader's measurements of 2.31; and how one version's events become another's.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "plugin/profiler/older_events.h"

namespace falcon::plugin {
namespace {

TEST(ProfilerAbi, IsLaidOutAsNcclsOwn) {
  EXPECT_EQ(sizeof(EventV4), 104U);
  EXPECT_EQ(sizeof(EventV5), 112U);
  EXPECT_EQ(sizeof(EventV6), 112U);
  EXPECT_EQ(sizeof(EventV7), 136U);
  EXPECT_EQ(sizeof(ProfilerV4), 48U);
  EXPECT_EQ(sizeof(ProfilerV7), 48U);
  EXPECT_EQ(sizeof(StateArguments), 8U);
  EXPECT_EQ(offsetof(EventV4, rank), 16U);
  EXPECT_EQ(offsetof(EventV4, collective), 24U);
  EXPECT_EQ(offsetof(EventV7, collective), 24U);
  EXPECT_EQ(24 + offsetof(CollectiveV4, algorithm), 88U);
  EXPECT_EQ(24 + offsetof(CollectiveV5, group), 104U);
  EXPECT_EQ(24 + offsetof(CollectiveV7, kernelVariant), 112U);
  EXPECT_EQ(24 + offsetof(CollectiveV7, symmetric), 120U);
  EXPECT_EQ(24 + offsetof(CollectiveV7, tag), 128U);
  EXPECT_EQ(24 + offsetof(CollectiveApiV5, graphCaptured), 64U);
  EXPECT_EQ(24 + offsetof(CollectiveApiV7, tag), 72U);
  EXPECT_EQ(24 + offsetof(CopyEngineV6, stream), 104U);
  EXPECT_EQ(24 + offsetof(CopyEngineV7, tag), 112U);
  EXPECT_EQ(24 + offsetof(KernelPhase, phase), 25U);
  EXPECT_EQ(24 + offsetof(KernelPhase, name), 32U);
  EXPECT_EQ(24 + offsetof(KernelPhase, timer), 40U);
  EXPECT_EQ(24 + offsetof(ProxyOp, sends), 44U);
}

/// What stands in all members of a description stands at the same place in all versions.
TEST(ProfilerAbi, AnOlderDescriptionIsTheBeginningOfANewerOne) {
  EXPECT_EQ(offsetof(CollectiveV4, protocol), offsetof(CollectiveV7, protocol));
  EXPECT_EQ(offsetof(CollectiveV5, group), offsetof(CollectiveV7, group));
  EXPECT_EQ(offsetof(MessageV4, channels), offsetof(MessageV7, channels));
  EXPECT_EQ(offsetof(MessageV5, group), offsetof(MessageV7, group));
  EXPECT_EQ(offsetof(CollectiveApiV5, graphCaptured), offsetof(CollectiveApiV7, graphCaptured));
  EXPECT_EQ(offsetof(MessageApiV5, graphCaptured), offsetof(MessageApiV7, graphCaptured));
  EXPECT_EQ(offsetof(CopyEngineV6, stream), offsetof(CopyEngineV7, stream));
}

TEST(ProfilerAbi, InVersion4TheGroupIsTheParent) {
  int api = 0, group = 0;
  Event event{.type = collectiveEvent, .parent = &api, .rank = 3};
  event.collective = {.number = 7, .count = 100, .channels = 2, .group = &group};
  const EventV4 old = olderEvent<EventV4>(event);
  EXPECT_EQ(old.type, collectiveEvent);
  EXPECT_EQ(old.parent, &group);
  EXPECT_EQ(old.rank, 3);
  EXPECT_EQ(old.collective.number, 7U);
  EXPECT_EQ(old.collective.channels, 2);
  const Event back = newestEvent(old);
  EXPECT_EQ(back.parent, nullptr);
  EXPECT_EQ(back.collective.group, &group);
  EXPECT_EQ(back.collective.tag, 0U);
}

TEST(ProfilerAbi, WhatAnOlderNcclLeavesInItsMemoryIsNotBelieved) {
  EventV5 old;
  std::memset(&old, 0xaa, sizeof old);
  old.type = messageEvent;
  old.message = {.function = "Send", .count = 5, .peer = 1, .channels = 1, .group = nullptr};
  EXPECT_EQ(newestEvent(old).message.tag, 0U);
  EXPECT_EQ(newestEvent(old).message.peer, 1);
  std::memset(&old, 0xaa, sizeof old);
  old.type = collectiveApiEvent;
  EXPECT_EQ(newestEvent(old).collectiveApi.tag, 0U);
  old.type = messageApiEvent;
  EXPECT_EQ(newestEvent(old).messageApi.tag, 0U);
  Event newest{.type = messageEvent};
  newest.message.tag = 9;
  EXPECT_EQ(newestEvent(newest).message.tag, 9U);
}

/// A child's bit makes NCCL tell its parents too.
TEST(ProfilerAbi, AChildsBitTellsItsParents) {
  EXPECT_NE(bitsThatTell(collectiveEvent) & proxyStepEvent, 0U);
  EXPECT_NE(bitsThatTell(groupApiEvent) & kernelChannelEvent, 0U);
  EXPECT_EQ(bitsThatTell(collectiveEvent) & messageEvent, 0U);
  EXPECT_EQ(bitsThatTell(proxyOpEvent) & kernelChannelEvent, 0U);
  EXPECT_EQ(bitsThatTell(1U << 20), 0U);
}

}  // namespace
}  // namespace falcon::plugin
