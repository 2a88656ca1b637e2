#include <algorithm>

#include "validate/link_messages.h"
#include "validate/link_test.h"

namespace falcon::validate {
namespace {

class Sender final : public LinkTestEnd {
 public:
  Sender(transport::SendPort& data, transport::ReceivePort& questions, std::uint64_t run,
         const LinkTestSettings& settings, const Clock& clock)
      : data_(data),
        questions_(questions),
        run_(run),
        settings_(settings),
        clock_(clock),
        silentUntil_(clock.now() + settings.answerLimit),
        payload_(data.chunkBytes()) {}

  bool progress() override {
    if (finished_) return false;
    const auto moved = advance();
    // The transport has logged what broke; the receiving end reports it.
    if (!moved) finished_ = true;
    // The receiving end stops asking when its own limits are over: by then it has said so, or it is gone.
    if (clock_.now() > silentUntil_) finished_ = true;
    return moved && *moved;
  }

  bool finished() const override { return finished_; }
  void giveUp(LinkStatus) override { finished_ = true; }
  std::optional<LinkMeasurement> measurement() const override { return std::nullopt; }

  void addWaitSources(std::vector<transport::WaitSource>& sources) const override {
    sources.push_back(questions_.waitSource());
    if (sending_ || !data_.flushed()) sources.push_back(data_.waitSource());
  }

 private:
  Result<bool> advance() {
    bool moved = false;
    for (;;) {
      auto there = questions_.ready();
      if (!there) return there.error();
      if (!*there) break;
      const auto question = readMessage<Question>(questions_.chunk());
      if (question && question->run > run_) {
        // Of the next wave already: this one is over, and the question stays for the next test's end.
        finished_ = true;
        return true;
      }
      questions_.release();
      moved = true;
      if (question && question->run == run_) obey(*question);
      if (finished_) return true;
    }
    while (sending_) {
      auto chunk = data_.acquire();
      if (!chunk) return chunk.error();
      if (chunk->empty()) break;
      fill(*chunk);
      moved = true;
    }
    auto pushed = data_.progress();
    if (!pushed) return pushed.error();
    return moved || *pushed;
  }

  void obey(const Question& question) {
    silentUntil_ = clock_.now() + settings_.answerLimit + settings_.limit;
    if (question.finish) {
      finished_ = true;
      return;
    }
    sending_ = true;
    round_ = question.round;
    // Never more than our own settings allow, whatever the other side says.
    left_ = std::min(question.bytes, settings_.mostBytes);
    pieceBytes_ = std::clamp<std::size_t>(question.pieceBytes, sizeof(Piece), data_.chunkBytes());
  }

  void fill(std::span<std::byte> chunk) {
    const auto bytes = std::max<std::size_t>(std::min<std::uint64_t>(left_, pieceBytes_), sizeof(Piece));
    left_ -= std::min<std::uint64_t>(left_, bytes);
    sending_ = left_ > 0;
    Piece piece{.round = round_, .run = run_, .last = sending_ ? 0u : 1u};
    if (piece.last) {
      // Since the last round's end: being late to hear the question counts.
      const auto waited = settings_.runQueueWait();
      const auto inRound = std::chrono::duration_cast<std::chrono::microseconds>(waited - waited_);
      piece.waitedMicroseconds = static_cast<std::uint32_t>(std::clamp<std::int64_t>(inRound.count(), 0, 1 << 30));
      waited_ = waited;
    }
    writeMessage(piece, chunk);
    // A real sender copies too; without it a test over shared memory would move nothing.
    std::memcpy(chunk.data() + sizeof(Piece), payload_.data(), bytes - sizeof(Piece));
    data_.commit(bytes);
  }

  transport::SendPort& data_;
  transport::ReceivePort& questions_;
  const std::uint64_t run_;
  const LinkTestSettings settings_;
  const Clock& clock_;
  Nanoseconds silentUntil_;  // an end that is not asked until then is over
  std::vector<std::byte> payload_;
  bool finished_ = false;
  bool sending_ = false;
  std::uint32_t round_ = 0;
  std::uint64_t left_ = 0;
  std::size_t pieceBytes_ = 0;
  Nanoseconds waited_{0};
};

}  // namespace

Result<std::unique_ptr<LinkTestEnd>> startLinkTestSender(transport::Ports& ports, const WaveLink& link,
                                                         std::uint64_t run, const LinkTestSettings& settings,
                                                         const Clock& clock) {
  auto data = ports.openSend({link.to, dataChannel, settings.lane});
  if (!data) return data.error();
  auto questions = ports.openReceive({link.to, questionChannel, settings.lane});
  if (!questions) return questions.error();
  return std::unique_ptr<LinkTestEnd>(std::make_unique<Sender>(**data, **questions, run, settings, clock));
}

}  // namespace falcon::validate
