// Our declarations of NCCL's tuner plugin interface against sizes and places measured with its own headers
// (2.28, 2.30).
#include <gtest/gtest.h>

#include <cstddef>

#include "plugin/tuner/tuner_v4.h"
#include "plugin/tuner/tuner_v7.h"

namespace falcon::plugin {
namespace {

TEST(TunerAbi, IsLaidOutAsNcclsOwn) {
  EXPECT_EQ(sizeof(TunerV4), 32U);
  EXPECT_EQ(sizeof(TunerV5), 32U);
  EXPECT_EQ(sizeof(TunerV6), 40U);
  EXPECT_EQ(sizeof(TunerV7), 40U);
  EXPECT_EQ(offsetof(TunerV6, getChunkSize), 32U);
  EXPECT_EQ(sizeof(NvlDomains), 12U);
  EXPECT_EQ(sizeof(TunerConstantsV5), 1152U);
  EXPECT_EQ(offsetof(TunerConstantsV5, llBandwidths), 672U);
  EXPECT_EQ(offsetof(TunerConstantsV5, nvlsTreeBandwidths), 1056U);
  EXPECT_EQ(sizeof(TunerConstantsV7), 1272U);
}

}  // namespace
}  // namespace falcon::plugin
