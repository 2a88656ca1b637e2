// The ends of one connection, each in a process of its own.
#pragma once

#include <cstring>

#include "ext_net/ends.h"
#include "harness/forked_ranks.h"

namespace falcon::net::test {

using falcon::test::ForkedRanks;
using falcon::test::SharedBoard;

/// The receiver, which tells over the board where it is; null: nobody has come.
inline std::unique_ptr<Connection> accepted(Network& over, const SharedBoard& board,
                                            std::unique_ptr<Listener>& listener) {
  HandleBytes handle;
  listener = std::move(*over.listen(0, handle.get()));
  std::memcpy(board->ids[0], handle.get().data(), sizeof board->ids[0]);
  board->published[0] = 1;
  std::unique_ptr<Connection> made;
  waitFor([&] { return (made = std::move(*listener->accept())) != nullptr; });
  return made;
}

/// The sender, to that one; null: it has not come so far.
inline std::unique_ptr<Connection> connected(Network& over, const SharedBoard& board) {
  if (!waitFor([&] { return board->published[0] == 1; })) return nullptr;
  HandleBytes handle;
  std::memcpy(handle.get().data(), board->ids[0], sizeof board->ids[0]);
  std::unique_ptr<Connection> made;
  waitFor([&] { return (made = std::move(*over.connect(0, handle.get()))) != nullptr; });
  return made;
}

}  // namespace falcon::net::test
