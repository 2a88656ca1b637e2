// An application that has NVTX's real header, and knows nothing of Falcon: its ranges are in the job's log.
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "abi/ranks.h"
#include "api/nvtx_abi.h"
#include "instrument/range_log.h"

namespace falcon::abi {
namespace {

namespace nvtx = api::nvtx;

TEST(NvtxHeader, HasTheLayoutThatWeKnow) {
  using Ours = nvtx::EventAttributes;
  EXPECT_EQ(sizeof(Ours), sizeof(nvtxEventAttributes_t));
  EXPECT_EQ(offsetof(Ours, bytes), offsetof(nvtxEventAttributes_t, size));
  EXPECT_EQ(offsetof(Ours, messageType), offsetof(nvtxEventAttributes_t, messageType));
  EXPECT_EQ(offsetof(Ours, message), offsetof(nvtxEventAttributes_t, message));
  EXPECT_EQ(+Ours::narrow, NVTX_MESSAGE_TYPE_ASCII);
  EXPECT_EQ(+Ours::wide, NVTX_MESSAGE_TYPE_UNICODE);
  EXPECT_EQ(+Ours::registered, NVTX_MESSAGE_TYPE_REGISTERED);
  EXPECT_EQ(nvtx::noTracking, NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtx::core::module, NVTX_CB_MODULE_CORE);
  EXPECT_EQ(nvtx::domains::module, NVTX_CB_MODULE_CORE2);
  EXPECT_EQ(+nvtx::core::rangeStartEx, +NVTX_CBID_CORE_RangeStartEx);
  EXPECT_EQ(+nvtx::core::rangePop, +NVTX_CBID_CORE_RangePop);
  EXPECT_EQ(+nvtx::domains::rangeStartEx, +NVTX_CBID_CORE2_DomainRangeStartEx);
  EXPECT_EQ(+nvtx::domains::registerStringA, +NVTX_CBID_CORE2_DomainRegisterStringA);
  EXPECT_EQ(+nvtx::domains::createW, +NVTX_CBID_CORE2_DomainCreateW);
  EXPECT_EQ(static_cast<int>(nvtx::ExportTable::callbacks), NVTX_ETID_CALLBACKS);
  EXPECT_EQ(static_cast<int>(nvtx::ExportTable::versionInfo), NVTX_ETID_VERSIONINFO);
}

std::optional<instrument::RangeLogView> rangesIn(const std::string& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".ranges") continue;
    if (auto view = instrument::readRangeLog(file.path(), 1000)) return *view;
  }
  return std::nullopt;
}

nvtxEventAttributes_t attributes() {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  return event;
}

void useRangesOfAllKinds() {
  nvtxRangePushA("forward");
  nvtxRangePushW(L"layer 3");
  nvtxRangePop();
  nvtxEventAttributes_t event = attributes();
  event.message.ascii = "attention";
  nvtxRangePushEx(&event);
  nvtxRangePop();
  nvtxRangePop();

  const nvtxRangeId_t one = nvtxRangeStartA("started"), two = nvtxRangeStartW(L"started wide");
  const nvtxRangeId_t three = nvtxRangeStartEx(&event);
  std::thread([&] { nvtxRangeEnd(one); }).join();
  nvtxRangeEnd(three);
  nvtxRangeEnd(two);

  const nvtxDomainHandle_t domain = nvtxDomainCreateA("the application's");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "optimizer");
  nvtxDomainRangePushEx(domain, &event);
  nvtxRangePushA("of no domain");
  nvtxDomainRangePop(domain);
  nvtxRangePop();
  event.message.registered = nvtxDomainRegisterStringW(domain, L"checkpoint");
  nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &event));
  nvtxDomainDestroy(domain);
  nvtxMarkA("a mark is no range");
}

TEST(NvtxHeader, RangesAreInTheLogOfTheJob) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}, {"NVTX_INJECTION64_PATH", FALCON_LIBRARY}}, [&] {
    const Communicator comm{alone()};
    useRangesOfAllKinds();
    const auto view = rangesIn(job.folder());
    ASSERT_TRUE(view);
    std::map<std::string, std::uint32_t> depths;
    for (const auto& range : view->latest) {
      EXPECT_LE(range.begin, range.end);
      depths.emplace(view->names.at(range.name).text, range.depth);
    }
    EXPECT_EQ(view->ranges, 9u);
    EXPECT_EQ(depths, (std::map<std::string, std::uint32_t>{{"forward", 0},
                                                            {"layer #", 1},
                                                            {"attention", 1},
                                                            {"started", 0},
                                                            {"started wide", 0},
                                                            {"optimizer", 0},
                                                            {"of no domain", 0},
                                                            {"checkpoint", 0}}));
  });
}

TEST(NvtxHeader, DoesNothingWhileFalconIsOff) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "0"}, {"NCCL_FALCON_JOB", job.name}, {"NVTX_INJECTION64_PATH", FALCON_LIBRARY}}, [&] {
    const Communicator comm{alone()};
    useRangesOfAllKinds();
    EXPECT_EQ(nvtxDomainCreateA("any"), nullptr) << "NVTX's own answer where there is no tool";
    EXPECT_FALSE(std::filesystem::exists(job.folder()));
  });
}

}  // namespace
}  // namespace falcon::abi
