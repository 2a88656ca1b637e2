// A tuner plugin for tests, of the version FAKE_TUNER_VERSION. Read when it is loaded: FALCON_FAKE_PLUGIN_FAULT makes
// it unsound in one way; FALCON_FAKE_TUNER_ROW is the row of the table whose cost with Simple it makes 0;
// FALCON_FAKE_TUNER_CHANNELS the channels that it wishes for.
#include "harness/fake_tuner.h"

#include <cstdlib>
#include <string>

#include "plugin/tuner/tuner_v4.h"
#include "plugin/tuner/tuner_v7.h"

namespace {

using namespace falcon::plugin;

constexpr ResultCode systemError = 2;

falcon::test::FakeTunerCounts counts;
std::string fault;
int row = -1, wishedChannels = 0;
int context = 0;

ResultCode begin(void** itsContext, std::size_t ranks, std::size_t nodes) {
  ++counts.inits;
  counts.ranks = static_cast<int>(ranks);
  counts.nodes = static_cast<int>(nodes);
  *itsContext = &context;
  return fault == "init" ? systemError : success;
}

ResultCode getCollInfo(void*, TunedFunction, std::size_t, int, float** costs, int algorithms, int protocols, int,
                       int* channels) {
  ++counts.asked;
  auto* table = reinterpret_cast<float*>(costs);
  counts.offered = 0;
  for (int i = 0; i < algorithms * protocols; ++i)
    if (table[i] >= 0) ++counts.offered;
  if (fault == "ask") return systemError;
  if (row >= 0) table[row * protocols + protocolSimple] = 0;
  if (fault == "nothing")
    for (int i = 0; i < algorithms * protocols; ++i) table[i] = ignoredCost;
  *channels = wishedChannels;
  return success;
}

ResultCode finish(void*) {
  ++counts.finalizes;
  return success;
}

#if FAKE_TUNER_VERSION == 4
ResultCode init(std::size_t ranks, std::size_t nodes, Logger, void** itsContext) {
  return begin(itsContext, ranks, nodes);
}
using Own = TunerV4;
#else
#if FAKE_TUNER_VERSION == 5
using Own = TunerV5;
using Constants = TunerConstantsV5;
#elif FAKE_TUNER_VERSION == 6
using Own = TunerV6;
using Constants = TunerConstantsV5;
#else
using Own = TunerV7;
using Constants = TunerConstantsV7;
#endif
ResultCode init(void** itsContext, std::uint64_t, std::size_t ranks, std::size_t nodes, Logger, NvlDomains*,
                Constants*) {
  return begin(itsContext, ranks, nodes);
}
#endif

}  // namespace

extern "C" [[gnu::visibility("default")]] falcon::test::FakeTunerCounts* fakeTunerCounts() {
  return &counts;
}

#define NAME_OF(version) ncclTunerPlugin_v##version
#define EXPORTED(version) NAME_OF(version)
extern "C" {
[[gnu::visibility("default")]] Own EXPORTED(FAKE_TUNER_VERSION){"Fake", init, getCollInfo, finish};
}

namespace {

/// After all that it sets has been made.
const bool configured = [] {
  const auto value = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  fault = value("FALCON_FAKE_PLUGIN_FAULT");
  if (const auto set = value("FALCON_FAKE_TUNER_ROW"); !set.empty()) row = std::stoi(set);
  if (const auto set = value("FALCON_FAKE_TUNER_CHANNELS"); !set.empty()) wishedChannels = std::stoi(set);
  if (fault == "lacks-members") EXPORTED(FAKE_TUNER_VERSION).getCollInfo = nullptr;
  return true;
}();

}  // namespace
