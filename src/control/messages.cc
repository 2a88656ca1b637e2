#include "control/messages.h"

#include <type_traits>

#include "base/wire.h"

namespace falcon::control {
namespace {

// One description of each message's fields serves both directions: `Archive` is a Writer or a Reader.
struct Writer {
  WireWriter wire;
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void field(T& value) { wire.put(value); }
  void field(std::string& text) { wire.put(std::string_view(text)); }
  template <class T>
  void field(std::vector<T>& list) {
    wire.put(static_cast<std::uint32_t>(list.size()));
    for (T& item : list) item_(item);
  }
  template <class T>
  void item_(T& item);
};

struct Reader {
  WireReader wire;
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void field(T& value) { value = wire.get<T>(); }
  void field(std::string& text) { text = wire.getString(); }
  template <class T>
  void field(std::vector<T>& list) {
    // Every item takes at least one byte, a plain one its size: a hostile count cannot make us allocate more than it
    // sent.
    list.resize(wire.getCount(std::is_arithmetic_v<T> ? sizeof(T) : 4));
    for (T& item : list) item_(item);
  }
  template <class T>
  void item_(T& item);
};

template <class A, class... Fields>
void all(A& archive, Fields&... fields) {
  (archive.field(fields), ...);
}

template <class A>
void visit(A& a, Introduce& m) {
  all(a, m.jobRank, m.host, m.node, m.address, m.pid, m.clockDomain, m.processors);
}
template <class A>
void visit(A& a, CommunicatorFormed& m) {
  all(a, m.id, m.hostEngine, m.jobRanks, m.nodes, m.ring, m.firstRing);
}
template <class A>
void visit(A& a, CommunicatorGone& m) {
  all(a, m.id);
}
template <class A>
void visit(A& a, PartKnown& m) {
  all(a, m.dataParallelSize, m.pipelineParallelSize, m.tensorParallelSize, m.dataParallelIndex, m.pipelineParallelIndex,
      m.tensorParallelIndex, m.microBatches, m.split, m.multiple, m.leastMicroBatches, m.mostMicroBatches, m.evenOnly,
      m.rail, m.role, m.stateBytes);
}
template <class A>
void visit(A& a, MemoryPart& m) {
  all(a, m.pool, m.bytesLeft);
}
template <class A>
void visit(A& a, MemoryKnown& m) {
  all(a, m.parts);
}
template <class A>
void visit(A& a, Reshaped& m) {
  all(a, m.agreement, m.done, m.seconds, m.problem);
}
template <class A>
void visit(A& a, RestartKnown& m) {
  all(a, m.asked, m.expectedSeconds, m.measuredSeconds, m.checkpoint, m.waitedSeconds, m.writtenSeconds, m.seesOthers);
}
template <class A>
void visit(A& a, Traffic& m) {
  all(a, m.id, m.collectives, m.sendsTo);
}
template <class A>
void visit(A& a, CommunicatorTime& m) {
  all(a, m.id, m.seconds, m.calls);
}
template <class A>
void visit(A& a, RangeTime& m) {
  all(a, m.name, m.seconds, m.times);
}
template <class A>
void visit(A& a, Sample& m) {
  all(a, m.index, m.seconds, m.outside, m.microBatches, m.disturbed, m.provisional, m.pattern, m.calls, m.quotaCores,
      m.processor, m.busyCores, m.stolenCores, m.work, m.communicators, m.ranges);
}
template <class A>
void visit(A& a, Samples& m) {
  all(a, m.samples);
}
template <class A>
void visit(A& a, TransferSum& m) {
  all(a, m.id, m.peer, m.sending, m.bytes, m.ringBytes, m.moving, m.waiting, m.channel);
}
template <class A>
void visit(A& a, NetCondition& m) {
  all(a, m.peer, m.condition, m.score);
}
template <class A>
void visit(A& a, TransferProfile& m) {
  all(a, m.sums, m.net);
}
template <class A>
void visit(A& a, TimedCall& m) {
  all(a, m.communicator, m.operation, m.peer, m.sequence, m.bytes, m.enter, m.duration);
}
template <class A>
void visit(A& a, CallTimes& m) {
  all(a, m.calls, m.onHostsClock);
}
template <class A>
void visit(A& a, ClockAnswer& m) {
  all(a, m.asked, m.received, m.answered);
}
template <class A>
void visit(A& a, TrapState& m) {
  all(a, m.trap, m.held);
}
template <class A>
void visit(A& a, ComputeResult& m) {
  all(a, m.trap, m.gigaflopsPerSecond, m.throttledSeconds, m.runQueueSeconds, m.problem, m.stolenSeconds,
      m.processorSeconds, m.wallSeconds, m.processors, m.thermalThrottles, m.power, m.memoryRate, m.gpu);
}
template <class A>
void visit(A& a, LinkResults& m) {
  all(a, m.wave, m.measurements);
}
template <class A>
void visit(A& a, Counter& m) {
  all(a, m.agreement, m.next);
}
template <class A>
void visit(A& a, Vote& m) {
  all(a, m.agreement, m.yes);
}
template <class A>
void visit(A&, RequestOff&) {}
template <class A>
void visit(A& a, AskSuspend& m) {
  all(a, m.request, m.limitSeconds, m.attempt);
}
template <class A>
void visit(A& a, AskResume& m) {
  all(a, m.request);
}
template <class A>
void visit(A& a, AskExamination& m) {
  all(a, m.request);
}
template <class A>
void visit(A&, Leaving&) {}
template <class A>
void visit(A& a, SuspendAnswer& m) {
  all(a, m.request, m.outcome, m.text, m.attempt);
}
template <class A>
void visit(A& a, Examined& m) {
  all(a, m.request, m.problem, m.content);
}
template <class A>
void visit(A& a, SetProfiling& m) {
  all(a, m.on, m.mostCalls);
}
template <class A>
void visit(A& a, AskClock& m) {
  all(a, m.asked);
}
template <class A>
void visit(A& a, CloseTrap& m) {
  all(a, m.trap, m.limitSeconds, m.asked, m.drain);
}
template <class A>
void visit(A& a, DrainCount& m) {
  all(a, m.communicator, m.from, m.to, m.count);
}
template <class A>
void visit(A& a, DrainPart& m) {
  all(a, m.communicator, m.rank);
}
template <class A>
void visit(A& a, DrainState& m) {
  all(a, m.trap, m.version, m.below, m.held, m.entered, m.parts, m.working);
}
template <class A>
void visit(A& a, DrainTargets& m) {
  all(a, m.trap, m.version, m.targets);
}
template <class A>
void visit(A& a, OpenTrap& m) {
  all(a, m.trap, m.someoneDied);
}
template <class A>
void visit(A& a, RunCompute& m) {
  all(a, m.trap, m.spanSeconds);
}
template <class A>
void visit(A& a, RunWave& m) {
  all(a, m.wave, m.probe, m.plan);
}
template <class A>
void visit(A& a, AskCounter& m) {
  all(a, m.agreement, m.kind, m.communicator);
}
template <class A>
void visit(A& a, Propose& m) {
  all(a, m.agreement, m.kind, m.communicator, m.from, m.values, m.members);
}
template <class A>
void visit(A& a, Decide& m) {
  all(a, m.agreement, m.commit);
}
template <class A>
void visit(A& a, Undecided& m) {
  all(a, m.agreement, m.kind, m.by, m.members);
}
template <class A>
void visit(A& a, Recall& m) {
  all(a, m.undecided, m.decisions);
}
template <class A>
void visit(A& a, ShowState& m) {
  all(a, m.state, m.failslows);
}
template <class A>
void visit(A&, SwitchOff&) {}

template <class T>
void Writer::item_(T& item) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
    field(item);
  else
    visit(*this, item);
}
template <class T>
void Reader::item_(T& item) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
    field(item);
  else
    visit(*this, item);
}

template <size_t index = 0>
std::optional<Message> decodeAs(std::uint8_t type, Reader& reader) {
  if constexpr (index == std::variant_size_v<Message>) {
    return std::nullopt;
  } else {
    if (type != index) return decodeAs<index + 1>(type, reader);
    std::variant_alternative_t<index, Message> message;
    visit(reader, message);
    if (!reader.wire.finished()) return std::nullopt;
    return message;
  }
}

}  // namespace

bool isOrder(const Message& message) {
  return message.index() >= Message(SetProfiling{}).index();
}

std::string encode(const Message& message) {
  Writer writer;
  writer.wire.put(static_cast<std::uint8_t>(message.index()));
  Message copy = message;
  std::visit([&](auto& each) { visit(writer, each); }, copy);
  return writer.wire.take();
}

std::optional<Message> decode(std::string_view bytes) {
  Reader reader{WireReader(bytes)};
  const auto type = reader.wire.get<std::uint8_t>();
  if (!reader.wire.ok()) return std::nullopt;
  return decodeAs(type, reader);
}

}  // namespace falcon::control
