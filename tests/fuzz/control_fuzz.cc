// Messages between members and the controller, and what validation sends through them.
#include "control/messages.h"
#include "fuzz_target.h"
#include "validate/link_measurement.h"

namespace falcon::fuzz {
namespace {

using namespace control;

std::string encodeAgain(const Message& message) {
  return control::encode(message);
}

}  // namespace

// The first byte says which reader gets the rest.
std::vector<std::string> seeds() {
  const Message messages[] = {Introduce{1, "host", "node", "10.0.0.1", 4711},
                              CommunicatorFormed{3, true, {4, 5, 6}, {"a", "b", "c"}, {0, 2, 1}, {0, 1, 2}},
                              CommunicatorGone{3},
                              PartKnown{2, 1, 1, 1, 0, 0, 8, {5, 3}},
                              RestartKnown{true, 300, 9, 40, 0.5, 2},
                              MemoryKnown{{{"machine", 5}, {"cgroup", 6}}},
                              Traffic{9, true, {1, 2}},
                              Samples{{{.index = 7, .seconds = 0.5, .communicators = {{42, 0.125, 9}}}}},
                              TransferProfile{{{1, 2, true, 3, 2, 0.5, 0.25}}},
                              TrapState{1, true},
                              DrainState{1, 2, true, false, {{7, 0, 2, 9}}, {{7, 0}}},
                              DrainTargets{1, 2, {{7, -1, -1, 9}}},
                              ComputeResult{1, 2, 3, 4, "problem"},
                              LinkResults{1, "measurements"},
                              Counter{1, 2},
                              Vote{1, true},
                              RunWave{1, true, "plan"},
                              Propose{5, AgreementKind::ring, 77, 123, {2, 0, 1}, {8, 9}},
                              Decide{5, true},
                              Recall{{{5, AgreementKind::ring, 1, {8, 9}}}, {{4, true}}},
                              SwitchOff{}};
  std::vector<std::string> all;
  for (const Message& message : messages) all.push_back('\0' + control::encode(message));
  all.push_back('\1' + validate::encode(validate::Wave{1, transport::Lane::test, {{5, {0, 1}, 2, 3}}}));
  all.push_back('\2' + validate::encode(std::vector<validate::LinkMeasurement>(2)));
  return all;
}

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % 3) {
    case 0:
      return requireRoundTrip(bytes, control::decode, encodeAgain);
    case 1:
      return requireRoundTrip(bytes, validate::decodeWave,
                              [](const validate::Wave& wave) { return validate::encode(wave); });
    default:
      return requireRoundTrip(bytes, validate::decodeMeasurements,
                              [](const std::vector<validate::LinkMeasurement>& all) { return validate::encode(all); });
  }
}

}  // namespace falcon::fuzz
