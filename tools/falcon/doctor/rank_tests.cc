#include "doctor/rank_tests.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "base/owned.h"
#include "base/system_error.h"
#include "validate/compute_test.h"
#include "validate/memory_test.h"
#include "validate/package_power.h"

namespace falcon::doctor {
namespace {

using validate::unknown;

/// Both tests of the processor together, as shares of their wall time.
class EvidenceSum {
 public:
  void add(const validate::ComputeScore& score) {
    wall_ += seconds(score.wall);
    processor_ += seconds(score.processor);
    add(score.stat.throttled, throttled_);
    add(score.stat.runQueueWait, waited_);
    add(score.stat.steal, stolen_);
    thermal_ += score.stat.thermalThrottles ? static_cast<double>(*score.stat.thermalThrottles) : unknown;
  }
  validate::CauseEvidence evidence() const {
    validate::CauseEvidence evidence;
    if (wall_ <= 0) return evidence;
    evidence.throttled = throttled_ / wall_;
    evidence.waited = waited_ / wall_;
    evidence.stolen = stolen_ / wall_;
    evidence.ran = processor_ / wall_;
    evidence.processors = static_cast<double>(validate::allowedProcessors().size());
    evidence.thermalThrottles = thermal_;
    return evidence;
  }

 private:
  // What is unknown once stays so.
  static void add(const std::optional<Nanoseconds>& time, double& sum) { sum += time ? seconds(*time) : unknown; }

  double wall_ = 0, processor_ = 0, throttled_ = 0, waited_ = 0, stolen_ = 0, thermal_ = 0;
};

Result<FileDescriptor> newSocket(int family, int flags) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!socket) return Error::system("no socket: {}", reasonOf(errno));
  return socket;
}

/// Two ends of one connection, from the address to itself.
Result<std::pair<FileDescriptor, FileDescriptor>> connectToOneself(SocketAddress own) {
  const auto failed = [&](const char* what) {
    return Error::system("cannot {} {} for the loopback test: {}", what, own.host(), reasonOf(errno));
  };
  own.setPort(0);
  const auto listener = newSocket(own.family(), 0);
  if (!listener) return listener.error();
  if (::bind(listener->get(), own.get(), own.length()) != 0 || ::listen(listener->get(), 1) != 0)
    return failed("listen on");
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &length);
  auto sender = newSocket(own.family(), 0);
  if (!sender) return sender.error();
  if (::connect(sender->get(), reinterpret_cast<const sockaddr*>(&bound), length) != 0) return failed("connect to");
  FileDescriptor receiver(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!receiver) return failed("accept from");
  return std::pair(std::move(*sender), std::move(receiver));
}

}  // namespace

Result<double> testLoopback(const SocketAddress& own, Nanoseconds span) {
  const auto ends = connectToOneself(own);
  if (!ends) return ends.error();
  std::vector<char> bytes(256 << 10, 'x');
  const auto& clock = SystemClock::instance();
  const auto start = clock.now();
  double received = 0;
  Nanoseconds taken{0};
  // One thread drives both ends in turn: what one call sends the next ones receive, so nothing waits for a core.
  for (; taken < span; taken = clock.now() - start) {
    const auto sent = ::send(ends->first.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return Error::system("loopback: {}", reasonOf(errno));
    pollfd watched{ends->second.get(), POLLIN, 0};
    ::poll(&watched, 1, 10);
    const auto got = ::recv(ends->second.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) received += static_cast<double>(got);
  }
  return received / seconds(taken);
}

RankSample measureRank(const SocketAddress& own, const TestSpans& spans, std::string& product) {
  using validate::Precision;
  const auto& clock = SystemClock::instance();
  RankSample sample;
  EvidenceSum sum;
  const auto powerBefore = validate::readPackagePower();
  const auto start = clock.now();
  for (const auto precision : {Precision::f32, Precision::f64}) {
    const auto score = validate::makeComputeBenchmark(clock, nullptr, {}, precision)->run(spans.compute);
    if (!score) continue;
    (precision == Precision::f32 ? sample.gigaflops32 : sample.gigaflops64) = score->gigaflopsPerSecond;
    product = score->product;
    sum.add(*score);
  }
  sample.evidence = sum.evidence();
  sample.evidence.power = validate::packagePowerShare(powerBefore, validate::readPackagePower(), clock.now() - start);
  if (const auto memory = validate::testMemory(clock, spans.memory)) sample.memoryRate = memory->bytesPerSecond;
  if (const auto loopback = testLoopback(own, spans.loopback)) sample.loopbackRate = *loopback;
  return sample;
}

}  // namespace falcon::doctor
