// What the library puts into NVTX's tables, seen from NVTX's side: tables of our own, so that it runs everywhere.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <set>

#include "abi/ranks.h"
#include "api/nvtx_abi.h"
#include "instrument/range_log.h"

namespace falcon::abi {
namespace {

namespace nvtx = api::nvtx;

/// One copy of NVTX, as each library that uses it has one.
struct FakeNvtx {
  static constexpr unsigned most = 17;
  static inline unsigned entries = 16;
  static inline std::array<nvtx::Function, most> coreFunctions{}, domainFunctions{};
  static inline std::array<nvtx::Function*, most> coreTable{}, domainTable{};
  static inline std::uint32_t toldVersion = 0;
  static inline bool hasCallbacks = true;

  static int moduleFunctions(int module, nvtx::FunctionTable* table, unsigned* count) {
    if (module != nvtx::core::module && module != nvtx::domains::module) return 0;
    auto& functions = module == nvtx::core::module ? coreFunctions : domainFunctions;
    auto& places = module == nvtx::core::module ? coreTable : domainTable;
    for (unsigned i = 1; i < entries; ++i) places[i] = &functions[i];
    *table = places.data();
    *count = entries;
    return 1;
  }
  static const void* exportTable(std::uint32_t which) {
    static const nvtx::CallbackTable callbacks{sizeof callbacks, moduleFunctions};
    static const nvtx::VersionInfo info{sizeof info, 3, 0, [](std::uint32_t version) { toldVersion = version; }};
    if (which == static_cast<std::uint32_t>(nvtx::ExportTable::callbacks)) return hasCallbacks ? &callbacks : nullptr;
    return which == static_cast<std::uint32_t>(nvtx::ExportTable::versionInfo) ? &info : nullptr;
  }
};

int inject(nvtx::GetExportTable table) {
  using Inject = int (*)(nvtx::GetExportTable);
  const auto function = reinterpret_cast<Inject>(dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2"));
  if (!function) ADD_FAILURE() << "not exported";
  return function ? function(table) : -1;
}

std::set<unsigned> setIn(const std::array<nvtx::Function, FakeNvtx::most>& functions) {
  std::set<unsigned> set;
  for (unsigned i = 0; i < functions.size(); ++i)
    if (functions[i]) set.insert(i);
  return set;
}

TEST(NvtxTables, GetTheFunctionsOfRangesAndNoOthers) {
  inFreshChild({{"NCCL_FALCON", "1"}}, [] {
    EXPECT_EQ(inject(FakeNvtx::exportTable), 1);
    EXPECT_EQ(setIn(FakeNvtx::coreFunctions), (std::set<unsigned>{4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(setIn(FakeNvtx::domainFunctions), (std::set<unsigned>{2, 3, 4, 5, 10, 11, 12, 13}));
    EXPECT_EQ(FakeNvtx::toldVersion, nvtx::version);
  });
}

TEST(NvtxTables, StayAsTheyAreWhereRangesAreNotWanted) {
  for (const auto& environment : std::vector<std::vector<std::pair<const char*, std::string>>>{
           {{"NCCL_FALCON", "0"}}, {{"NCCL_FALCON", ""}}, {{"NCCL_FALCON", "1"}, {"NCCL_FALCON_NVTX", "off"}}})
    inFreshChild(environment, [] {
      EXPECT_EQ(inject(FakeNvtx::exportTable), 0);
      EXPECT_TRUE(setIn(FakeNvtx::coreFunctions).empty());
      EXPECT_TRUE(setIn(FakeNvtx::domainFunctions).empty());
    });
}

TEST(NvtxTables, OfAnotherVersionDoNoHarm) {
  inFreshChild({{"NCCL_FALCON", "1"}}, [] {
    EXPECT_EQ(inject(nullptr), 0);
    EXPECT_EQ(inject([](std::uint32_t) -> const void* { return nullptr; }), 0);
    FakeNvtx::entries = 9;  // one that ends early
    EXPECT_EQ(inject(FakeNvtx::exportTable), 1);
    EXPECT_EQ(setIn(FakeNvtx::coreFunctions), (std::set<unsigned>{4, 5, 6, 7, 8}));
    FakeNvtx::hasCallbacks = false;
    EXPECT_EQ(inject(FakeNvtx::exportTable), 0);
  });
}

template <class Signature>
Signature* function(unsigned number, bool ofDomains = false) {
  return reinterpret_cast<Signature*>((ofDomains ? FakeNvtx::domainFunctions : FakeNvtx::coreFunctions)[number]);
}

TEST(NvtxTables, FunctionsTakeWhateverTheyAreGiven) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    ASSERT_EQ(inject(FakeNvtx::exportTable), 1);
    const auto push = function<int(const nvtx::EventAttributes*)>(nvtx::core::rangePushEx);
    const auto pop = function<int()>(nvtx::core::rangePop);
    const auto pushText = function<int(const char*)>(nvtx::core::rangePushA);
    const auto createDomain = function<const void*(const char*)>(nvtx::domains::createA, true);
    const auto pushIn = function<int(const void*, const nvtx::EventAttributes*)>(nvtx::domains::rangePushEx, true);
    const auto popIn = function<int(const void*)>(nvtx::domains::rangePop, true);
    EXPECT_EQ(pushText("before the first communicator"), nvtx::noTracking);
    const Communicator comm{alone()};
    EXPECT_EQ(pop(), nvtx::noTracking) << "what was pushed before the job is none of it";
    nvtx::EventAttributes attributes{};
    push(nullptr), pop();
    push(&attributes), pop();  // of no size
    attributes.bytes = sizeof attributes;
    push(&attributes), pop();  // without a message
    attributes.messageType = nvtx::EventAttributes::registered;
    attributes.message = "no handle of ours";
    push(&attributes), pop();
    attributes.messageType = 77;
    push(&attributes), pop();
    pushText(nullptr), pop();
    for (int i = 0; i < 100; ++i) EXPECT_NE(createDomain(("domain " + std::string(1 + i, 'x')).c_str()), nullptr);
    EXPECT_EQ(createDomain("mine"), createDomain("mine"));
    attributes.messageType = nvtx::EventAttributes::narrow;
    attributes.message = "ncclAllReduce";
    pushIn(createDomain("NCCL"), &attributes), popIn(createDomain("NCCL"));
    for (const auto& file : std::filesystem::directory_iterator(job.folder())) {
      if (file.path().extension() != ".ranges") continue;
      const auto view = instrument::readRangeLog(file.path(), 100);
      ASSERT_TRUE(view);
      ASSERT_EQ(view->names.size(), 1u);
      EXPECT_EQ(view->names[0].text, "unnamed");
      EXPECT_EQ(view->ranges, 5u) << "not with a wrong handle, and not NCCL's own";
    }
  });
}

}  // namespace
}  // namespace falcon::abi
