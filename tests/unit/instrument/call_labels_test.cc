#include "instrument/call_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "nccl_falcon.h"

namespace falcon::instrument {
namespace {

ncclConfigExt_t option(int id, int value, ncclConfigExt_t* next = nullptr) {
  return {next, {NCCL_FALCON_VENDOR_ID, id}, {.i = value}};
}

CallLabels labelsIn(ncclConfigExt_t& first) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.ext = &first;
  const auto labels = labelsOf(config);
  EXPECT_TRUE(labels);
  return labels ? *labels : CallLabels();
}

TEST(CallLabelsOf, AreTheTagAndOurOptionsInAnyOrder) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  EXPECT_TRUE(labelsOf(config)->empty());
  config.userProfilerTag = 5;
  EXPECT_EQ(*labelsOf(config), (CallLabels{5}));
  ncclConfigExt_t group = option(NCCL_FALCON_OPTION_GROUP, 3);
  ncclConfigExt_t iteration = option(NCCL_FALCON_OPTION_ITERATION, 1, &group);
  ncclConfigExt_t phase = option(NCCL_FALCON_OPTION_PHASE, 2, &iteration);
  EXPECT_EQ(labelsIn(phase), (CallLabels{0, 1, 2, 3}));
  EXPECT_EQ(labelsIn(iteration), (CallLabels{0, 1, CallLabels::none, 3}));
}

TEST(CallLabelsOf, OthersMeanNothing) {
  ncclConfigExt_t later = option(1000, -1);
  ncclConfigExt_t others{&later, {7, NCCL_FALCON_OPTION_PHASE}, {.s = "any"}};
  EXPECT_TRUE(labelsIn(others).empty());
}

TEST(CallLabelsOf, WhatCannotBeIsNamed) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  const auto problem = [&](ncclConfigExt_t& first) {
    config.ext = &first;
    const auto labels = labelsOf(config);
    return labels ? std::string() : labels.error().message();
  };
  ncclConfigExt_t negative = option(NCCL_FALCON_OPTION_PHASE, -2);
  EXPECT_EQ(problem(negative), "NCCL_FALCON_OPTION_PHASE is -2, below 0");
  ncclConfigExt_t last = option(NCCL_FALCON_OPTION_GROUP, 0), first = option(NCCL_FALCON_OPTION_GROUP, 1, &last);
  EXPECT_EQ(problem(first), "NCCL_FALCON_OPTION_GROUP is there twice");
  ncclConfigExt_t endless = option(1000, 0);
  endless.next = &endless;
  EXPECT_THAT(problem(endless), testing::HasSubstr("next = NULL"));
}

TEST(CallLabelsOf, ConfigurationsThatWereNotInitializedAreTold) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  EXPECT_TRUE(isInitialized(config));
  EXPECT_FALSE(isInitialized(ncclCollConfig_t{}));
  config.size = 8;
  EXPECT_FALSE(isInitialized(config));
}

}  // namespace
}  // namespace falcon::instrument
