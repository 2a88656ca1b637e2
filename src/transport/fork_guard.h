// A forked child (a data loader, say) inherits our sockets; while it lives, its copies would hide our death from the
// peers.
#pragma once

namespace falcon::transport {

/// In children forked from now on, this socket's number refers to /dev/null instead. Needs no undoing when it is
/// closed.
void closeInForkedChildren(int socket);

}  // namespace falcon::transport
