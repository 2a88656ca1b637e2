#include "core/adapter.h"

#include <exception>
#include <limits>

#include "base/log.h"

namespace falcon::net::adapter {
namespace {

ResultCode codeOf(const Error& error) {
  return static_cast<ResultCode>(error.code());
}

constexpr ResultCode invalidArgument = static_cast<ResultCode>(ErrorCode::invalidArgument);

/// Runs `body`, which returns a result code; nothing is thrown into NCCL.
template <class Body>
ResultCode guarded(const char* function, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    log::warn("{}: {} finds no memory", networkName, function);
    return static_cast<ResultCode>(ErrorCode::system);
  } catch (const std::exception& problem) {
    log::warn("{}: {} failed: {}", networkName, function, problem.what());
    return static_cast<ResultCode>(ErrorCode::internal);
  }
}

ResultCode nullPointer(const char* function, const char* what) {
  log::warn("{}: {} was given no {} (a null pointer)", networkName, function, what);
  return invalidArgument;
}

}  // namespace

ResultCode begin(Logger logger) {
  return guarded("init", [&]() -> ResultCode {
    if (logger) logTo(logger);
    const auto devices = network().devices();
    return devices ? ok : codeOf(devices.error());
  });
}

ResultCode devices(int* count) {
  return guarded("devices", [&]() -> ResultCode {
    if (!count) return nullPointer("devices", "place for the count");
    const auto devices = network().devices();
    if (!devices) return codeOf(devices.error());
    *count = static_cast<int>(devices->size());
    return ok;
  });
}

const Device* deviceOf(int number, ResultCode& result) {
  const Device* device = nullptr;
  result = guarded("getProperties", [&]() -> ResultCode {
    const auto devices = network().devices();
    if (!devices) return codeOf(devices.error());
    if (number < 0 || static_cast<std::size_t>(number) >= devices->size()) {
      log::warn("{}: there is no device {}: there are {}, from 0 on", networkName, number, devices->size());
      return invalidArgument;
    }
    device = &(*devices)[static_cast<std::size_t>(number)];
    return ok;
  });
  return device;
}

ResultCode listen(int device, void* handle, void** listenComm) {
  return guarded("listen", [&]() -> ResultCode {
    if (!handle || !listenComm) return nullPointer("listen", handle ? "place for the listener" : "handle");
    ResultCode result = ok;
    if (!deviceOf(device, result)) return result;
    auto listener = network().listen(device, Handle(static_cast<std::byte*>(handle), transport::net::handleBytes));
    if (!listener) return codeOf(listener.error());
    *listenComm = listener->release();
    return ok;
  });
}

ResultCode connect(int device, void* handle, void** sendComm) {
  return guarded("connect", [&]() -> ResultCode {
    if (!handle || !sendComm) return nullPointer("connect", handle ? "place for the connection" : "handle");
    *sendComm = nullptr;
    ResultCode result = ok;
    if (!deviceOf(device, result)) return result;
    auto connection = network().connect(device, Handle(static_cast<std::byte*>(handle), transport::net::handleBytes));
    if (!connection) return codeOf(connection.error());
    *sendComm = connection->release();
    return ok;
  });
}

ResultCode accept(void* listenComm, void** recvComm) {
  return guarded("accept", [&]() -> ResultCode {
    if (!listenComm || !recvComm) return nullPointer("accept", listenComm ? "place for the connection" : "listener");
    *recvComm = nullptr;
    auto connection = static_cast<Listener*>(listenComm)->accept();
    if (!connection) return codeOf(connection.error());
    *recvComm = connection->release();
    return ok;
  });
}

ResultCode registerMemory(void* comm, void* data, std::size_t bytes, int kind, void** mark) {
  return guarded("regMr", [&]() -> ResultCode {
    if (!comm || !mark) return nullPointer("regMr", comm ? "place for the mark" : "connection");
    const auto registered = static_cast<Connection*>(comm)->registerMemory(data, bytes, kind);
    if (!registered) return codeOf(registered.error());
    *mark = *registered;
    return ok;
  });
}

ResultCode registerDmaBuffer(void* comm, void* data, std::size_t bytes, int kind, std::uint64_t offset, int file,
                             void** mark) {
  return guarded("regMrDmaBuf", [&]() -> ResultCode {
    if (!comm || !mark) return nullPointer("regMrDmaBuf", comm ? "place for the mark" : "connection");
    const auto registered = static_cast<Connection*>(comm)->registerDmaBuffer(data, bytes, kind, offset, file);
    if (!registered) return codeOf(registered.error());
    *mark = *registered;
    return ok;
  });
}

ResultCode deregisterMemory(void* comm, void* mark) {
  return guarded("deregMr", [&]() -> ResultCode {
    if (!comm) return nullPointer("deregMr", "connection");
    static_cast<Connection*>(comm)->deregisterMemory(mark);
    return ok;
  });
}

ResultCode start(void* comm, void* data, std::size_t bytes, void* mark, void** request) {
  return guarded("isend or irecv", [&]() -> ResultCode {
    if (!comm || !request) return nullPointer("isend or irecv", comm ? "place for the request" : "connection");
    *request = nullptr;  // NCCL may leave a hint there
    if (bytes > longestMessage || (bytes > 0 && !data)) {
      log::warn("{}: a message of {} bytes at {} cannot be", networkName, bytes, data);
      return invalidArgument;
    }
    const auto started = static_cast<Connection*>(comm)->start(data, bytes, mark);
    if (!started) return codeOf(started.error());
    *request = *started;
    return ok;
  });
}

ResultCode startReceive(void* comm, int count, void** data, std::size_t bytes, void** marks, void** request) {
  if (count != 1 || !data) {
    log::warn("{}: irecv of {} buffers at once; maxRecvs says 1", networkName, count);
    return invalidArgument;
  }
  return start(comm, data[0], bytes, marks ? marks[0] : nullptr, request);
}

ResultCode flush(void* comm, int count, void** data, const int* sizes, void** marks, void** request) {
  return guarded("iflush", [&]() -> ResultCode {
    if (!comm || !request) return nullPointer("iflush", comm ? "place for the request" : "connection");
    *request = nullptr;
    if (count != 1 || !data || !sizes || sizes[0] < 0) {
      log::warn("{}: iflush of {} buffers at once; maxRecvs says 1", networkName, count);
      return invalidArgument;
    }
    const auto started =
        static_cast<Connection*>(comm)->flush(data[0], static_cast<std::size_t>(sizes[0]), marks ? marks[0] : nullptr);
    if (!started) return codeOf(started.error());
    *request = *started;
    return ok;
  });
}

ResultCode test(void* request, int* done, int* bytes) {
  return guarded("test", [&]() -> ResultCode {
    if (!request || !done) return nullPointer("test", request ? "place for the answer" : "request");
    *done = 0;
    std::size_t moved = 0;
    const auto finished = static_cast<Request*>(request)->test(moved);
    if (!finished) return codeOf(finished.error());
    if (!*finished) return ok;
    if (bytes) *bytes = static_cast<int>(std::min<std::size_t>(moved, std::numeric_limits<int>::max()));
    *done = 1;
    return ok;
  });
}

ResultCode closeConnection(void* comm) {
  return guarded("close", [&]() -> ResultCode {
    delete static_cast<Connection*>(comm);
    return ok;
  });
}

ResultCode closeListener(void* listenComm) {
  return guarded("closeListen", [&]() -> ResultCode {
    delete static_cast<Listener*>(listenComm);
    return ok;
  });
}

}  // namespace falcon::net::adapter
