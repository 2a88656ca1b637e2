// A net plugin for tests, of the version FAKE_NET_VERSION: it really moves bytes, over TCP on the loopback, and is as
// reluctant as a plugin may be: connections and requests are had at the second or third try only.
// FALCON_FAKE_NET_FAULT, read when it is loaded, makes it unsound in one way: see faults below. FALCON_FAKE_NET_NAME
// gives it another name.
#include "harness/fake_net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "transport/plugin/net_v10.h"
#include "transport/plugin/net_v12.h"
#include "transport/plugin/net_v6.h"
#include "transport/plugin/net_v7.h"
#include "transport/plugin/net_v8.h"

namespace {

using namespace falcon::transport::net;
using falcon::test::FakeNetCounts;

constexpr ResultCode systemError = 2;
constexpr ResultCode remoteError = 6;

FakeNetCounts counts;
std::string fault;  // the word; behind a colon, which message it is that does it
long faultAt = 0;
char deviceName[] = "lo";

bool faulty(std::string_view word) {
  return fault == word;
}

/// Waits for `tries` calls before it does what it is asked.
struct Reluctance {
  int tries = 2;
  bool refuses() { return tries-- > 0; }
};

struct Listener {
  int socket = -1;
  Reluctance reluctance;
};

struct Connection;
struct Request {
  Connection* connection = nullptr;
  char* data = nullptr;
  std::size_t size = 0;  // of a receive: room at first
  bool used = false;
  bool done = false;
};

/// One end. A message is its length and its bytes.
struct Connection {
  int socket = -1;
  bool sends = false;
  std::array<Request, mostRequests> requests{};
  std::uint64_t begun = 0;     // requests
  std::uint64_t finished = 0;  // by the connection; in order
  std::uint64_t length = 0;    // of the present message
  std::size_t moved = 0;       // bytes of it, its length included
  Reluctance reluctance{1};
  std::atomic<bool> inUse{false};

  Request& at(std::uint64_t number) { return requests[number % mostRequests]; }
};

class Use {
 public:
  explicit Use(Connection& connection) : connection_(connection) {
    if (connection_.inUse.exchange(true)) ++counts.sharedByThreads;
  }
  ~Use() { connection_.inUse = false; }

 private:
  Connection& connection_;
};

/// What a handle holds; the connecting end keeps its socket there between tries.
struct Handle {
  sockaddr_in address;
  int socket;
  Reluctance reluctance;
};
static_assert(sizeof(Handle) <= handleBytes);

ResultCode init() {
  ++counts.inits;
  return faulty("init") ? systemError : success;
}

ResultCode devices(int* count) {
  if (faulty("devices")) return systemError;
  *count = faulty("no-device") ? 0 : 1;
  return success;
}

template <class Properties>
ResultCode getProperties(int, Properties* properties) {
  if (faulty("properties")) return systemError;
  *properties = {};
  properties->name = faulty("no-name") ? nullptr : deviceName;
  properties->ptrSupport = faulty("no-host-memory") ? 2 : hostMemory;
  properties->speed = 10000;
  properties->maxComms = faulty("no-connections") ? 0 : 1 << 16;
  properties->maxRecvs = faulty("no-receives") ? 0 : 1;
#if FAKE_NET_VERSION >= 7
  properties->netDeviceType = faulty("gpu-driven") ? 1 : hostDevice;
#endif
#if FAKE_NET_VERSION >= 9
  properties->vProps.ndevs = faulty("parts") ? 9 : 1;
  properties->maxP2pBytes = faulty("short-messages") ? 1000 : std::size_t{1} << 40;
  properties->maxCollBytes = std::size_t{1} << 40;
#endif
#if FAKE_NET_VERSION >= 11
  properties->maxMultiRequestSize = 1;
#endif
#if FAKE_NET_VERSION >= 12
  properties->railId = properties->planeId = undefined;
#endif
  return success;
}

ResultCode listen(void* handle, void** listenComm) {
  if (faulty("listen")) return systemError;
  if (faulty("listen-null")) return success;
  auto* listener = new Listener{socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), {}};
  Handle own{};
  own.socket = -1;
  own.address.sin_family = AF_INET;
  own.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof own.address;
  auto* address = reinterpret_cast<sockaddr*>(&own.address);
  if (listener->socket < 0 || bind(listener->socket, address, length) != 0 || ::listen(listener->socket, 16) != 0 ||
      getsockname(listener->socket, address, &length) != 0)
    return systemError;
  std::memcpy(handle, &own, sizeof own);
  ++counts.listeners;
  *listenComm = listener;
  return success;
}

void* open(int socket, bool sends) {
  ++counts.connections;
  auto* connection = new Connection;
  connection->socket = socket;
  connection->sends = sends;
  return connection;
}

ResultCode connect(void* handle, void** sendComm) {
  *sendComm = nullptr;
  if (faulty("connect")) return remoteError;
  if (faulty("connect-never")) return success;
  Handle own;
  std::memcpy(&own, handle, sizeof own);
  if (own.socket < 0) {
    own.socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (::connect(own.socket, reinterpret_cast<sockaddr*>(&own.address), sizeof own.address) != 0 &&
        errno != EINPROGRESS)
      return remoteError;
  }
  pollfd entry{own.socket, POLLOUT, 0};
  if (!own.reluctance.refuses() && poll(&entry, 1, 0) == 1) *sendComm = open(own.socket, true);
  std::memcpy(handle, &own, sizeof own);
  return success;
}

ResultCode accept(void* listenComm, void** recvComm) {
  auto& listener = *static_cast<Listener*>(listenComm);
  *recvComm = nullptr;
  if (faulty("accept")) return remoteError;
  if (faulty("accept-blocks")) {  // until somebody connects, as Google's Fast Socket does
    pollfd entry{listener.socket, POLLIN, 0};
    if (poll(&entry, 1, 3000) != 1) return systemError;
  } else if (listener.reluctance.refuses()) {
    return success;
  }
  const int socket = accept4(listener.socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) return errno == EAGAIN || errno == EINTR ? success : systemError;
  *recvComm = open(socket, false);
  return success;
}

ResultCode regMr(int type, void** mhandle) {
  if (type != hostMemory || faulty("regMr")) return systemError;
  ++counts.registered;
  *mhandle = nullptr;  // as plugins have it that need none
  return success;
}

ResultCode deregMr(void*, void*) {
  --counts.registered;
  return success;
}

/// Moves bytes of the oldest request. False: nothing for now.
bool moveOnce(Connection& connection, ResultCode& result) {
  Request& request = connection.at(connection.finished);
  const bool inLength = connection.moved < sizeof connection.length;
  char* const start = inLength ? reinterpret_cast<char*>(&connection.length) + connection.moved
                               : request.data + (connection.moved - sizeof connection.length);
  const std::size_t left =
      (inLength ? sizeof connection.length : sizeof connection.length + connection.length) - connection.moved;
  if (left > 0) {
    const auto moved =
        connection.sends ? send(connection.socket, start, left, MSG_NOSIGNAL) : recv(connection.socket, start, left, 0);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (moved <= 0) {
      result = remoteError;
      return false;
    }
    connection.moved += static_cast<std::size_t>(moved);
  }
  if (connection.moved < sizeof connection.length) return true;
  if (connection.length > request.size) {
    result = systemError;
    return false;
  }
  if (connection.moved < sizeof connection.length + connection.length) return true;
  request.size = connection.length;
  request.done = true;
  ++connection.finished;
  connection.moved = 0;
  if (connection.finished != connection.begun && connection.sends)
    connection.length = connection.at(connection.finished).size;
  return true;
}

ResultCode progress(Connection& connection) {
  ResultCode result = success;
  while (connection.finished != connection.begun && moveOnce(connection, result)) {
  }
  return result;
}

ResultCode begin(void* comm, void* data, std::size_t size, void** request) {
  auto& connection = *static_cast<Connection*>(comm);
  const Use use(connection);
  *request = nullptr;
  if (connection.reluctance.refuses()) return success;
  connection.reluctance.tries = 1;
  if (!connection.sends && faulty("irecv")) return systemError;
  if (connection.sends && ++counts.messages == faultAt) {
    if (faulty("isend")) return remoteError;
    if (faulty("cut")) shutdown(connection.socket, SHUT_RDWR);
    if (faulty("garble")) static_cast<char*>(data)[30] ^= 1;  // in the token
    if (faulty("magic")) static_cast<char*>(data)[0] ^= 1;
  }
  Request& free = connection.at(connection.begun);
  if (free.used) {
    ++counts.tooManyRequests;
    return systemError;
  }
  free = {&connection, static_cast<char*>(data), size, true, false};
  if (connection.begun++ == connection.finished && connection.sends) connection.length = size;
  *request = &free;
  return success;
}

ResultCode test(void* which, int* done, int* size) {
  auto& request = *static_cast<Request*>(which);
  const Use use(*request.connection);
  *done = 0;
  if (const ResultCode result = progress(*request.connection); result != success && !request.done) return result;
  if (!request.done) return success;
  *done = 1;
  if (size && !faulty("no-sizes")) *size = static_cast<int>(request.size);
  request.used = false;
  return success;
}

ResultCode close(void* comm) {
  auto* connection = static_cast<Connection*>(comm);
  for (const Request& request : connection->requests) counts.leftOver += request.used;
  ::close(connection->socket);
  delete connection;
  ++counts.closed;
  return success;
}

ResultCode closeListen(void* listenComm) {
  auto* listener = static_cast<Listener*>(listenComm);
  ::close(listener->socket);
  delete listener;
  --counts.listeners;
  return success;
}

// What is below is all that differs between versions.
#if FAKE_NET_VERSION <= 9
ResultCode initHere(Logger logger) {
  logger(LogLevel::info, 0, __FILE__, __LINE__, "fake net %d begins\n", FAKE_NET_VERSION);
  return init();
}
#elif FAKE_NET_VERSION == 10
ResultCode initHere(Logger logger, ProfilerCallback profiler) {
  logger(LogLevel::info, 0, __FILE__, __LINE__, "fake net %d begins\n", FAKE_NET_VERSION);
  void* event = nullptr;
  return profiler(&event, 0, nullptr, 0, nullptr) == success ? init() : systemError;
}
#else
ResultCode initHere(void** context, std::uint64_t communicator, CommConfig* config, Logger logger,
                    ProfilerCallback profiler) {
  logger(LogLevel::info, 0, __FILE__, __LINE__, "fake net %d begins\n", FAKE_NET_VERSION);
  void* event = nullptr;
  if (config->trafficClass != undefined || profiler(&event, 0, nullptr, 0, nullptr) != success) return systemError;
  if (const ResultCode made = init(); made != success) return made;
  static std::uint64_t lasting;  // who has no finalize has nothing to be ended
  *context = faulty("no-finalize") ? &lasting : new std::uint64_t(communicator);
  return success;
}
ResultCode finalize(void* context) {
  delete static_cast<std::uint64_t*>(context);
  ++counts.finalizes;
  return success;
}
#endif

#if FAKE_NET_VERSION <= 10
ResultCode listenHere(int, void* handle, void** listenComm) {
  return listen(handle, listenComm);
}
#else
ResultCode listenHere(void* context, int, void* handle, void** listenComm) {
  return context ? listen(handle, listenComm) : systemError;
}
#endif

#if FAKE_NET_VERSION == 6
ResultCode connectHere(int, void* handle, void** sendComm) {
  return connect(handle, sendComm);
}
ResultCode acceptHere(void* listenComm, void** recvComm) {
  return accept(listenComm, recvComm);
}
#else
#if FAKE_NET_VERSION <= 9
ResultCode connectHere(int, void* handle, void** sendComm, DeviceHandle** device) {
#elif FAKE_NET_VERSION == 10
ResultCode connectHere(int, CommConfig* config, void* handle, void** sendComm, DeviceHandle** device) {
  if (config->trafficClass != undefined) return systemError;
#else
ResultCode connectHere(void* context, int, void* handle, void** sendComm, DeviceHandle** device) {
  if (!context) return systemError;
#endif
  return *device ? systemError : connect(handle, sendComm);
}
ResultCode acceptHere(void* listenComm, void** recvComm, DeviceHandle** device) {
  return *device ? systemError : accept(listenComm, recvComm);
}
#endif

#if FAKE_NET_VERSION <= 7
using RegisteredSize = int;
#else
using RegisteredSize = std::size_t;
#endif
ResultCode regMrHere(void*, void*, RegisteredSize, int type, void** mhandle) {
  return regMr(type, mhandle);
}

#if FAKE_NET_VERSION <= 8
using MessageSize = int;
#else
using MessageSize = std::size_t;
#endif
#if FAKE_NET_VERSION <= 9
ResultCode isendHere(void* comm, void* data, MessageSize size, int, void*, void** request) {
  return begin(comm, data, static_cast<std::size_t>(size), request);
}
ResultCode irecvHere(void* comm, int, void** data, MessageSize* sizes, int*, void**, void** request) {
  return begin(comm, data[0], static_cast<std::size_t>(sizes[0]), request);
}
#else
ResultCode isendHere(void* comm, void* data, MessageSize size, int, void*, void*, void** request) {
  return begin(comm, data, size, request);
}
ResultCode irecvHere(void* comm, int, void** data, MessageSize* sizes, int*, void**, void** events, void** request) {
  return events ? begin(comm, data[0], sizes[0], request) : systemError;
}
#endif

#define FAKE_NET_NAME_OF(version) PluginV##version
#define FAKE_NET_STRUCT(version) FAKE_NET_NAME_OF(version)
#define FAKE_NET_SYMBOL_OF(version) ncclNetPlugin_v##version
#define FAKE_NET_SYMBOL(version) FAKE_NET_SYMBOL_OF(version)

}  // namespace

extern "C" {
[[gnu::visibility("default")]] FAKE_NET_STRUCT(FAKE_NET_VERSION) FAKE_NET_SYMBOL(FAKE_NET_VERSION) = {
  .name = "Fake",
  .init = initHere,
  .devices = devices,
  .getProperties = getProperties,
  .listen = listenHere,
  .connect = connectHere,
  .accept = acceptHere,
  .regMr = regMrHere,
  .regMrDmaBuf = nullptr,
  .deregMr = deregMr,
  .isend = isendHere,
  .irecv = irecvHere,
  .iflush = nullptr,
  .test = test,
  .closeSend = close,
  .closeRecv = close,
  .closeListen = closeListen,
#if FAKE_NET_VERSION >= 11
  .finalize = finalize,
#endif
};

// In a library of two versions only the newer one counts.
#ifndef FAKE_NET_UNCOUNTED
[[gnu::visibility("default")]] FakeNetCounts* fakeNetCounts() {
  return &counts;
}
#endif
}

namespace {

bool readFault() {
  auto& plugin = FAKE_NET_SYMBOL(FAKE_NET_VERSION);
  if (const char* name = std::getenv("FALCON_FAKE_NET_NAME")) plugin.name = strdup(name);
  const char* given = std::getenv("FALCON_FAKE_NET_FAULT");
  if (!given) return false;
  fault = given;
  if (const auto colon = fault.find(':'); colon != std::string::npos) {
    faultAt = std::strtol(fault.c_str() + colon + 1, nullptr, 10);
    fault.resize(colon);
  }
  if (fault == "lacks-members") plugin.isend = nullptr, plugin.test = nullptr;
#if FAKE_NET_VERSION >= 11
  if (fault == "no-finalize") plugin.finalize = nullptr;
#endif
  return true;
}

// When the library is loaded, after what it writes to was made.
[[maybe_unused]] const bool isUnsound = readFault();

}  // namespace
