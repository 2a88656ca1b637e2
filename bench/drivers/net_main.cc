// What a net plugin does on the loopback, called as NCCL calls it, and beside it a bare TCP connection.
//   bench_net throughput PLUGIN BYTES SECONDS   MB/s of messages of that size, eight under way
//   bench_net latency PLUGIN BYTES COUNT        half a round trip in microseconds, median
//   bench_net bare-latency - BYTES COUNT        the same of send() and recv() over TCP, polled
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "transport/plugin/net_v12.h"

namespace {

using namespace falcon::transport::net;
using Clock = std::chrono::steady_clock;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "bench_net: %s failed\n", what);
  std::exit(1);
}

void logLine(LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != LogLevel::warn) return;
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
}

/// Two processes' pipes, and which of the two this is.
struct Side {
  bool first = false;
  int read = -1, write = -1;
};

Side split() {
  int there[2], back[2];
  check(pipe(there) == 0 && pipe(back) == 0, "pipe");
  const bool first = fork() != 0;
  return first ? Side{true, back[0], there[1]} : Side{false, there[0], back[1]};
}

struct Net {
  const PluginV12& plugin;
  void* context = nullptr;

  explicit Net(const char* path) : plugin(find(path)) {
    CommConfig config{undefined};
    check(plugin.init(&context, 1, &config, logLine, nullptr) == success, "init");
  }
  static const PluginV12& find(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::fprintf(stderr, "%s\n", dlerror());
    check(library, "dlopen");
    const auto* symbol = static_cast<const PluginV12*>(dlsym(library, "ncclNetPlugin_v12"));
    check(symbol, "dlsym");
    return *symbol;
  }
  /// A connection from the first to the second, or the other way round.
  void* connection(const Side& side, bool sends) const {
    char handle[handleBytes]{};
    void *listener = nullptr, *comm = nullptr;
    DeviceHandle* none = nullptr;
    if (!sends) {
      check(plugin.listen(context, 0, handle, &listener) == success, "listen");
      check(write(side.write, handle, sizeof handle) == sizeof handle, "write");
      while (!comm) check(plugin.accept(listener, &comm, &none) == success, "accept");
      plugin.closeListen(listener);
    } else {
      check(read(side.read, handle, sizeof handle) == sizeof handle, "read");
      while (!comm) check(plugin.connect(context, 0, handle, &comm, &none) == success, "connect");
    }
    return comm;
  }
  void* send(void* comm, void* data, std::size_t bytes) const {
    void* request = nullptr;
    while (!request) check(plugin.isend(comm, data, bytes, 0, nullptr, nullptr, &request) == success, "isend");
    return request;
  }
  void* receive(void* comm, void* data, std::size_t bytes) const {
    void *request = nullptr, *mark = nullptr, *event = nullptr;
    int tag = 0;
    while (!request) check(plugin.irecv(comm, 1, &data, &bytes, &tag, &mark, &event, &request) == success, "irecv");
    return request;
  }
  void wait(void* request) const {
    int done = 0, size = 0;
    for (;; sched_yield()) {
      check(plugin.test(request, &done, &size) == success, "test");
      if (done) return;
    }
  }
};

void throughput(const char* path, std::size_t bytes, double seconds) {
  constexpr std::size_t underWay = 8;
  const Side side = split();
  const Net net(path);
  void* comm = net.connection(side, side.first);
  std::vector<char> data(bytes * underWay, 1);
  std::vector<void*> requests(underWay, nullptr);
  const auto begun = Clock::now();
  std::size_t count = 0;
  // The last message is of one byte: it ends the measurement.
  if (side.first) {
    while (std::chrono::duration<double>(Clock::now() - begun).count() < seconds) {
      void*& request = requests[count % underWay];
      if (request) net.wait(request);
      request = net.send(comm, data.data() + count++ % underWay * bytes, bytes);
    }
    for (std::size_t i = 0; i < underWay; ++i)
      if (void* request = requests[(count + i) % underWay]) net.wait(request);
    net.wait(net.send(comm, data.data(), 1));
    char ready = 0;
    check(read(side.read, &ready, 1) == 1, "read");
    const double took = std::chrono::duration<double>(Clock::now() - begun).count();
    std::printf("%.1f\n", static_cast<double>(count * bytes) / took / 1e6);
  } else {
    for (std::size_t i = 0; i < underWay; ++i) requests[i] = net.receive(comm, data.data() + i * bytes, bytes);
    for (;; ++count) {
      int done = 0, size = 0;
      for (; !done; sched_yield()) check(net.plugin.test(requests[count % underWay], &done, &size) == success, "test");
      if (size == 1) break;
      requests[count % underWay] = net.receive(comm, data.data() + count % underWay * bytes, bytes);
    }
    check(write(side.write, "x", 1) == 1, "write");
    _exit(0);
  }
}

template <class Send, class Receive>
void pingPong(bool first, std::size_t count, const Send& send, const Receive& receive) {
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    if (first)
      send(), receive();
    else
      receive(), send();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count() / 2);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count / 2), times.end());
  if (first) std::printf("%.3f\n", times[count / 2]);
}

void latency(const char* path, std::size_t bytes, std::size_t count) {
  const Side side = split();
  const Net net(path);
  void* out = side.first ? net.connection(side, true) : nullptr;
  void* in = net.connection(side, false);
  if (!out) out = net.connection(side, true);
  std::vector<char> sent(bytes, 1), got(bytes);
  void* posted = net.receive(in, got.data(), bytes);
  pingPong(
      side.first, count, [&] { net.wait(net.send(out, sent.data(), bytes)); },
      [&] {
        net.wait(posted);
        posted = net.receive(in, got.data(), bytes);
      });
  if (!side.first) _exit(0);
}

void bareLatency(std::size_t bytes, std::size_t count) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  check(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener, 1) == 0, "listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const bool first = fork() != 0;
  int connection = -1;
  if (first) {
    connection = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(connection, reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
  } else {
    connection = accept(listener, nullptr, nullptr);
  }
  const int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  std::vector<char> data(bytes, 1);
  const auto all = [&](auto&& move) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t moved = move(data.data() + done, bytes - done);
      check(moved > 0 || (moved < 0 && errno == EAGAIN), "send or recv");
      if (moved > 0) done += static_cast<std::size_t>(moved);
      if (moved < 0) sched_yield();
    }
  };
  pingPong(
      first, count, [&] { all([&](char* at, std::size_t left) { return send(connection, at, left, MSG_DONTWAIT); }); },
      [&] { all([&](char* at, std::size_t left) { return recv(connection, at, left, MSG_DONTWAIT); }); });
  if (!first) _exit(0);
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count == 5 ? words[1] : "";
  if (what == "throughput")
    throughput(words[2], std::strtoull(words[3], nullptr, 10), std::strtod(words[4], nullptr));
  else if (what == "latency")
    latency(words[2], std::strtoull(words[3], nullptr, 10), std::strtoull(words[4], nullptr, 10));
  else if (what == "bare-latency")
    bareLatency(std::strtoull(words[3], nullptr, 10), std::strtoull(words[4], nullptr, 10));
  else
    return std::fprintf(stderr, "usage: see net_main.cc\n"), 2;
  int status = 0;
  wait(&status);
  return status;
}
