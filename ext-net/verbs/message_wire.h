// How messages go over verbs.
//
// The receiver says for each receive where its bytes may be written to: an *advert*, which is a SEND. The sender writes
// a message there, in pieces, each an RDMA WRITE, the last one with an immediate number that says which message that
// was. So bytes go where they belong and are never copied, a message that nobody has asked for stays where it is (the
// advert is the credit), and both ends learn of everything by completions, which verbs give in order; memory is not
// watched.
//
//   receiver                                        sender
//   start(): advert of message n       -- SEND -->  keeps it
//                                                   start(): pieces of message n
//   the bytes are there               <-- WRITE --
//   done                    <-- WRITE, immediate -- done once it is acknowledged
//
// An end has a receive posted for each thing that the other may send: of the adverts of at most 32 receives that are
// not done, and of the last pieces of at most 32 messages. Advert n + 32 comes only when message n is done, which was
// sent only after advert n was taken and its receive posted anew; so a receive is always there, and nobody waits for
// one.
//
// A message that is longer than its advert's room is not written: the sender says so (tooLong), and both fail.
#pragma once

#include <cstddef>
#include <cstdint>

namespace falcon::net {

struct Advert {
  std::uint64_t address = 0;
  std::uint64_t room = 0;  ///< bytes there
  std::uint32_t key = 0;   ///< remote key of that memory
  std::uint32_t number = 0;
};
static_assert(sizeof(Advert) == 24);

/// A piece is small enough for every device (rdma_rxe takes 8 MiB).
inline constexpr std::size_t pieceBytes = std::size_t{4} << 20;

/// The immediate number of a last piece: 12 bits of the message's number and how many whole pieces came before.
struct LastPiece {
  std::uint32_t number = 0;
  std::uint32_t before = 0;

  static constexpr std::uint32_t tooLong = (1u << 20) - 1;
  static constexpr std::uint32_t numbers = 1u << 12;

  constexpr std::uint32_t immediate() const { return number % numbers << 20 | before; }
  static constexpr LastPiece of(std::uint32_t immediate) { return {immediate >> 20, immediate & tooLong}; }
};

/// What a completion is about, as an id of work.
enum class Work : std::uint64_t { message, receive, advert, flush };

constexpr std::uint64_t workId(Work work, std::uint64_t number) {
  return static_cast<std::uint64_t>(work) << 56 | (number & ((std::uint64_t{1} << 56) - 1));
}
constexpr Work workOf(std::uint64_t id) {
  return static_cast<Work>(id >> 56);
}
constexpr std::uint64_t numberOf(std::uint64_t id) {
  return id & ((std::uint64_t{1} << 56) - 1);
}

}  // namespace falcon::net
