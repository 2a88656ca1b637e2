#include "serve.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "measuring_loop.h"

namespace falcon::bench {
namespace {

std::string toJson(const Task& task, const Measurement& measured) {
  std::string name;
  for (const CollectiveName& row : collectiveNames)
    if (row.collective == task.collective) name = row.name;
  std::string times;
  for (const double one : measured.microseconds) times += (times.empty() ? "" : ", ") + std::to_string(one);
  return "{\"collective\": \"" + name + "\", \"bytes\": " + std::to_string(task.bytes) +
         ", \"supported\": " + (measured.supported ? "true" : "false") +
         ", \"calls\": " + std::to_string(measured.calls) +
         ", \"wrong\": " + std::to_string(static_cast<long>(measured.wrong)) + ", \"microseconds\": [" + times + "]}";
}

int connectTo(const char* path) {
  const int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (control >= 0 && connect(control, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return control;
  std::perror(path);
  return -1;
}

bool sendLine(int control, const std::string& line) {
  const std::string text = line + '\n';
  return send(control, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

bool receiveLine(int control, std::string& line) {
  line.clear();
  for (char one = 0; read(control, &one, 1) == 1; line += one)
    if (one == '\n') return true;
  return false;
}

int serveCommandLine(Library& library, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto task = parseTask(argv[i]);
    if (!task) {
      std::fprintf(stderr, "%s: not a task, which is: collective bytes seconds batches verify(0 or 1)\n", argv[i]);
      return 2;
    }
    const Measurement measured = measure(library, *task);
    if (library.rank() == 0) std::printf("%s\n", toJson(*task, measured).c_str());
  }
  return 0;
}

int serveSocket(Library& library, const char* path) {
  const int control = connectTo(path);
  if (control < 0) return 1;
  sendLine(control, std::to_string(library.rank()) + ' ' + std::to_string(library.ranks()));
  for (std::string line; receiveLine(control, line);) {
    const auto task = parseTask(line);
    if (!task) return 2;
    const Measurement measured = measure(library, *task);
    if (!sendLine(control, library.rank() == 0 ? toJson(*task, measured) : "done")) break;
  }
  close(control);
  return 0;
}

}  // namespace

int serve(Library& library, int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--control") == 0) return serveSocket(library, argv[2]);
  return serveCommandLine(library, argc, argv);
}

}  // namespace falcon::bench
