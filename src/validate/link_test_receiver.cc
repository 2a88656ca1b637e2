#include <algorithm>
#include <utility>

#include "validate/link_messages.h"
#include "validate/link_test.h"

namespace falcon::validate {
namespace {

constexpr int greetings = 3;  // empty rounds; the quickest is the latency, the first includes the connecting
// Small pieces at first, so that something has arrived by the limit on the slowest links; whole chunks once it goes
// fast.
constexpr std::size_t smallPiece = 16 << 10;
// Of a long round the first fifth does not count.
constexpr std::uint64_t headShare = 5;
// Fewer bytes than this say nothing about a rate.
constexpr std::uint64_t leastBytes = 32 << 10;

class Receiver final : public LinkTestEnd {
 public:
  Receiver(transport::ReceivePort& data, transport::SendPort& questions, const WaveLink& link, transport::Medium medium,
           std::uint64_t run, const LinkTestSettings& settings, const Clock& clock)
      : data_(data),
        questions_(questions),
        run_(run),
        settings_(settings),
        clock_(clock),
        started_(clock.now()),
        scratch_(data.chunkBytes()) {
    result_.communicator = link.communicator;
    result_.link = link.link;
    result_.medium = medium;
  }

  bool progress() override {
    if (phase_ == Phase::finished) return false;
    const auto moved = advance();
    const auto now = clock_.now();
    if (!moved) {
      conclude(LinkStatus::failed);
      phase_ = Phase::finished;
      return true;
    }
    if (phase_ == Phase::closing) {
      // The other end learns that it is over; not worth waiting for long.
      const bool told = questions_.flushed() && !question_;
      if (told || now - closingSince_ > 100ms) phase_ = Phase::finished;
    } else if (!answered_ ? now - started_ > settings_.answerLimit : now - *answered_ > settings_.limit) {
      close(LinkStatus::timeout);
    }
    return *moved;
  }

  bool finished() const override { return phase_ == Phase::finished; }

  void giveUp(LinkStatus reason) override {
    if (phase_ == Phase::finished) return;
    if (phase_ != Phase::closing) close(reason);
    (void)advance();
    phase_ = Phase::finished;
  }

  std::optional<LinkMeasurement> measurement() const override {
    if (!finished()) return std::nullopt;
    return result_;
  }

  void addWaitSources(std::vector<transport::WaitSource>& sources) const override {
    sources.push_back(data_.waitSource());
    if (question_ || !questions_.flushed()) sources.push_back(questions_.waitSource());
  }

 private:
  enum class Phase { greeting, warmUp, measuring, closing, finished };

  Result<bool> advance() {
    if (round_ == 0) ask(0);
    bool moved = false;
    auto asked = pushQuestion();
    if (!asked) return asked.error();
    moved |= *asked;
    while (phase_ != Phase::closing) {
      auto there = data_.ready();
      if (!there) return there.error();
      if (!*there) {
        noteHead();
        break;
      }
      cameAlone_ = std::exchange(isWaiting_, false);
      take(data_.chunk());
      data_.release();
      moved = true;
      // The next question at once: the time until it leaves counts as the link's.
      asked = pushQuestion();
      if (!asked) return asked.error();
    }
    return moved;
  }

  /// The question waits until the port has room for it: there is at most one, the newest.
  void ask(std::uint64_t bytes) {
    ++round_;
    asked_ = clock_.now();
    waitedWhenAsked_ = settings_.runQueueWait();
    wanted_ = bytes;
    arrived_ = headBytes_ = 0;
    const auto piece = bytes <= settings_.firstBytes ? smallPiece : data_.chunkBytes();
    question_ = Question{.round = round_, .run = run_, .bytes = bytes, .pieceBytes = static_cast<std::uint32_t>(piece)};
  }

  Result<bool> pushQuestion() {
    bool moved = false;
    if (question_) {
      auto chunk = questions_.acquire();
      if (!chunk) return chunk.error();
      if (!chunk->empty()) {
        writeMessage(*question_, *chunk);
        questions_.commit(sizeof *question_);
        question_.reset();
        asked_ = clock_.now();  // connecting is no part of the latency or the rate
        moved = true;
      }
    }
    auto pushed = questions_.progress();
    if (!pushed) return pushed.error();
    return moved || *pushed;
  }

  void take(std::span<const std::byte> chunk) {
    const auto piece = readMessage<Piece>(chunk);
    if (!piece || piece->run != run_ || piece->round != round_) return;                   // left over
    std::memcpy(scratch_.data(), chunk.data(), std::min(chunk.size(), scratch_.size()));  // as a real receiver does
    lastArrived_ = clock_.now();
    if (!answered_) answered_ = lastArrived_;
    arrived_ += chunk.size();
    if (piece->last) endRound(std::chrono::microseconds(piece->waitedMicroseconds));
  }

  /// Nothing more is there. The head ends with a piece that was waited for and came alone: one that was found among
  /// others, since this end had no core for a moment, had come before, and the rest would seem to have come faster than
  /// it did.
  void noteHead() {
    // What is left must tell a rate by itself.
    if (cameAlone_ && headBytes_ == 0 && arrived_ >= wanted_ / headShare && arrived_ <= wanted_ / 2 && wanted_ > 0) {
      headBytes_ = arrived_;
      headArrived_ = lastArrived_;
    }
    cameAlone_ = false;
    isWaiting_ = true;
  }

  Nanoseconds sinceAsked() const { return std::max<Nanoseconds>(clock_.now() - asked_, 1ns); }

  /// The current round, as far as it got, as the result. Where it was long its head does not count: a shaper lets that
  /// much pass at once, after every pause anew.
  void keep(Nanoseconds time, Nanoseconds senderWaited) {
    const bool hasHead = time >= settings_.longEnough && headBytes_ > 0 && 2 * headBytes_ <= arrived_;
    result_.bytes = arrived_ - (hasHead ? headBytes_ : 0);
    result_.seconds = seconds(hasHead ? std::max<Nanoseconds>(clock_.now() - headArrived_, 1ns) : time);
    // As large a share of it as of the whole round.
    const double waited = seconds(settings_.runQueueWait() - waitedWhenAsked_ + senderWaited) / seconds(time);
    result_.waited = std::clamp(waited, 0.0, 1.0) * result_.seconds;
  }

  void endRound(Nanoseconds senderWaited) {
    const auto time = sinceAsked();
    switch (phase_) {
      case Phase::greeting:
        if (result_.latency < 0 || seconds(time) < result_.latency) result_.latency = seconds(time);
        if (static_cast<int>(round_) < greetings) return ask(0);
        phase_ = Phase::warmUp;
        return ask(settings_.warmUpBytes);
      case Phase::warmUp:
        // So slow that the next round may not come to an end: better a rate with some burst in it than none.
        if (time > settings_.steady) keep(time, senderWaited);
        phase_ = Phase::measuring;
        return ask(firstBytesAfter(time));
      case Phase::measuring:
        return endMeasuredRound(time, senderWaited);
      default:
        return;
    }
  }

  std::uint64_t firstBytesAfter(Nanoseconds warmUp) const {
    const double inSteadyTime = static_cast<double>(arrived_) * seconds(settings_.steady) / seconds(warmUp);
    if (inSteadyTime >= static_cast<double>(settings_.firstBytes)) return settings_.firstBytes;
    return std::max(static_cast<std::uint64_t>(inSteadyTime), settings_.fewestBytes);
  }

  void endMeasuredRound(Nanoseconds time, Nanoseconds senderWaited) {
    // The warm-up is only for want of anything better.
    if (rounds_.empty() || wanted_ != sizeOfRounds_) {
      rounds_.clear();
      sizeOfRounds_ = wanted_;
      timeOfSize_ = 0ns;
    }
    keep(time, senderWaited);
    rounds_.push_back(result_);
    result_ = telling(rounds_, time >= settings_.longEnough);
    timeOfSize_ += time;
    if (time < settings_.longEnough && wanted_ * 4 <= settings_.mostBytes) return ask(wanted_ * 4);
    const bool enough = static_cast<int>(rounds_.size()) >= settings_.repeats && timeOfSize_ >= settings_.repeatFor;
    if (timeOfSize_ < settings_.steady && !enough) return ask(wanted_);
    close(LinkStatus::measured);
  }

  /// Of rounds of one size. A busy machine only ever makes a round slower, so the best one tells of fast links, and
  /// where an end waited for a core in all of them. Of long rounds without such waits the middle one does.
  static LinkMeasurement telling(const std::vector<LinkMeasurement>& rounds, bool areLong) {
    std::vector<LinkMeasurement> candidates = rounds;
    if (areLong) std::erase_if(candidates, [](const LinkMeasurement& each) { return each.disturbed(); });
    const bool best = !areLong || candidates.empty();
    if (candidates.empty()) candidates = rounds;
    const auto chosen = candidates.begin() + static_cast<std::ptrdiff_t>(best ? 0 : (candidates.size() - 1) / 2);
    std::nth_element(candidates.begin(), chosen, candidates.end(),
                     [](const LinkMeasurement& one, const LinkMeasurement& other) {
                       return one.bytesPerSecond() > other.bytesPerSecond();
                     });
    return *chosen;
  }

  void conclude(LinkStatus reason) {
    // An unfinished round that ran for long counts more than a finished short one: on a link whose shaper has a deep
    // burst it is the one that tells.
    const bool inRound = phase_ == Phase::warmUp || phase_ == Phase::measuring;
    const bool tells = arrived_ >= leastBytes && (result_.bytes == 0 || sinceAsked() > settings_.steady);
    if (reason != LinkStatus::measured && inRound && tells) keep(sinceAsked(), 0ns);
    result_.status = result_.bytes > 0 && reason != LinkStatus::failed ? LinkStatus::measured : reason;
  }

  void close(LinkStatus reason) {
    conclude(reason);
    phase_ = Phase::closing;
    closingSince_ = clock_.now();
    question_ = Question{.round = ++round_, .run = run_, .finish = 1};
  }

  transport::ReceivePort& data_;
  transport::SendPort& questions_;
  const std::uint64_t run_;
  const LinkTestSettings settings_;
  const Clock& clock_;
  const Nanoseconds started_;
  std::vector<std::byte> scratch_;
  LinkMeasurement result_;
  Phase phase_ = Phase::greeting;
  std::optional<Nanoseconds> answered_;
  Nanoseconds asked_{0};
  Nanoseconds waitedWhenAsked_{0};
  Nanoseconds closingSince_{0};
  std::optional<Question> question_;
  std::uint32_t round_ = 0;
  std::uint64_t wanted_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t headBytes_ = 0;  ///< 0: the head is not there yet
  Nanoseconds headArrived_{0}, lastArrived_{0};
  bool isWaiting_ = false;               ///< nothing was there when it was looked the last time
  bool cameAlone_ = false;               ///< the last piece was waited for
  std::vector<LinkMeasurement> rounds_;  ///< of the present size
  std::uint64_t sizeOfRounds_ = 0;
  Nanoseconds timeOfSize_{0};
};

}  // namespace

LinkTestSettings testSettings() {
  return {};
}

LinkTestSettings briefSettings() {
  LinkTestSettings settings;
  settings.fewestBytes = 320 << 10;
  settings.steady = 50ms;
  return settings;
}

LinkTestSettings probeSettings() {
  LinkTestSettings settings;
  settings.lane = transport::Lane::probe;
  settings.warmUpBytes = 64 << 10;
  settings.mostBytes = settings.firstBytes;
  settings.repeats = 1;
  settings.repeatFor = 0ns;
  return settings;
}

Result<std::unique_ptr<LinkTestEnd>> startLinkTestReceiver(transport::Ports& ports, const WaveLink& link,
                                                           std::uint64_t run, const LinkTestSettings& settings,
                                                           const Clock& clock) {
  auto data = ports.openReceive({link.from, dataChannel, settings.lane});
  if (!data) return data.error();
  auto questions = ports.openSend({link.from, questionChannel, settings.lane});
  if (!questions) return questions.error();
  return std::unique_ptr<LinkTestEnd>(
      std::make_unique<Receiver>(**data, **questions, link, ports.mediumTo(link.from), run, settings, clock));
}

}  // namespace falcon::validate
