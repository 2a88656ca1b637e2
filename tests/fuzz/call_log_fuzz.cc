// Call logs and recordings: files that a crash has cut, or that somebody else wrote.
#include <cstring>

#include "fuzz_target.h"
#include "instrument/recording.h"

namespace falcon::fuzz {

using namespace instrument;

namespace {

/// As it comes from a mapping.
class Aligned {
 public:
  explicit Aligned(std::string_view input) : words_(input.size() / 8 + 1), size_(input.size()) {
    std::memcpy(words_.data(), input.data(), input.size());
  }
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte*>(words_.data()), size_}; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

void requireSound(const CallLogView& view) {
  for (const auto* calls : {&view.inFlight, &view.latest})
    for (const CallRecord& call : *calls) {
      require(nameOf(call.operation) && nameOf(call.type) && nameOf(call.reduction), "a call asks for what there is");
      require(std::strlen(nameOf(call.operation)) > 0, "an operation has a name");
    }
  for (const CommunicatorView& communicator : view.communicators) {
    require(communicator.rank >= 0 && communicator.rank < communicator.size, "a rank is one of its communicator");
    require(communicator.members.empty() || std::ssize(communicator.members) == communicator.size,
            "all members are known, or none");
  }
  for (const LabelledCall& call : view.labelled) {
    require(std::strlen(nameOf(call.operation)) > 0, "an operation has a name");
    require(call.labels.iteration >= CallLabels::none, "an iteration is a number, or none");
    require(call.labels.phase >= CallLabels::none && call.labels.group >= CallLabels::none, "so are phase and group");
  }
  for (const MakingView& making : view.makings) {
    require(making.rank >= 0 && making.rank < making.size, "a rank is one of what it makes");
    require(static_cast<std::uint32_t>(making.kind) < makingKindCount, "it is made in a way that there is");
  }
}

}  // namespace

std::vector<std::string> seeds() {
  CallLogView view;
  view.identity = {"job", "host", 1, 2};
  view.communicators.push_back({7, 0, 2, 0, false, true, 3, Nanoseconds(5), "dp", {{0, 0, 1, 2}, {1, 0, 3, 4}}, {}});
  CallRecord call;
  call.communicator = 7;
  call.enter = Nanoseconds(10);
  view.inFlight = {call};
  view.latest = {call, call, call};
  view.calls = 3;
  view.communicators[0].failure = call;
  view.makings = {{MakingKind::split, 7, 1, 4, Nanoseconds(9), true, "tp", {0, 1}}};
  view.labelled = {LabelledCall::of(call, {9, 17})};
  view.transfers = {{.communicator = 7, .peer = 1, .start = Nanoseconds(11), .stop = Nanoseconds(12)}};
  return {imageOf(view), encodeRecording({}),
          encodeRecording(std::vector<RankSnapshot>{{view, ProcessState::dead, Nanoseconds(20)}})};
}

void run(std::string_view input) {
  const Aligned aligned(input);
  if (const auto view = viewOf(aligned.bytes(), "log", SIZE_MAX)) {
    requireSound(*view);
    const std::string image = imageOf(*view);
    const Aligned copy(image);
    const auto again = viewOf(copy.bytes(), "copy", SIZE_MAX);
    require(static_cast<bool>(again), "what was read can be recorded");
    require(again->latest.size() == view->latest.size() && again->inFlight.size() == view->inFlight.size() &&
                again->communicators.size() == view->communicators.size() &&
                again->transfers.size() == view->transfers.size() && again->makings.size() == view->makings.size() &&
                again->labelled == view->labelled,
            "a recording has all that was read");
  }
  if (const auto recording = decodeRecording(aligned.bytes(), "recording"))
    for (const RankSnapshot& rank : recording->ranks) requireSound(rank.log);
}

}  // namespace falcon::fuzz
