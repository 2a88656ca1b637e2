#include "watch/event_handler.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/owned.h"

namespace falcon::watch {
namespace {

std::string kindOf(const std::string& eventLine) {
  const auto event = nlohmann::json::parse(eventLine, nullptr, false);
  if (!event.is_object() || !event.contains("kind") || !event["kind"].is_string()) return "unknown";
  return event["kind"].get<std::string>();
}

/// A file in memory and not a pipe: who writes into a pipe waits for who reads.
FileDescriptor inputHolding(const std::string& text) {
  FileDescriptor file(::memfd_create("falcon-event", MFD_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// -1 and errno where it cannot be started.
pid_t spawn(const std::vector<std::string>& command, int input) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawnattr_t manner;
  posix_spawnattr_init(&manner);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&manner, &none);
  posix_spawnattr_setpgroup(&manner, 0);
  posix_spawnattr_setflags(&manner, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t process = -1;
  const int problem = posix_spawnp(&process, words[0], &files, &manner, words.data(), environ);
  posix_spawnattr_destroy(&manner);
  posix_spawn_file_actions_destroy(&files);
  errno = problem;
  return problem == 0 ? process : -1;
}

/// As a word in quotes of curl's configuration.
std::string curlQuoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

EventHandler::EventHandler(HandlerRules rules, MakeDelivery deliver, Complain complain)
    : rules_(std::move(rules)), deliver_(std::move(deliver)), complain_(std::move(complain)) {}

EventHandler::~EventHandler() {
  if (process_ < 0) return;
  killAll();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void EventHandler::add(const std::string& eventLine) {
  if (waiting_.size() >= rules_.mostWaiting) {
    complain_(fmt::format("{} is too slow: an event \"{}\" is dropped", rules_.name, kindOf(waiting_.front())));
    ++failures_;
    waiting_.pop_front();
  }
  waiting_.push_back(eventLine);
}

void EventHandler::killAll() const {
  ::kill(-process_, SIGKILL);
}

void EventHandler::fail(const std::string& what) {
  ++failures_;
  complain_(fmt::format("{} {} (event \"{}\")", rules_.name, what, kindOf(current_)));
}

void EventHandler::tick(Time now) {
  if (process_ >= 0) {
    if (now >= deadline_ && !overdue_) {
      overdue_ = true;
      killAll();
    }
    siginfo_t end{};
    if (::waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == 0) return;
    killAll();  // what it left behind in its group, whose number nobody else gets before the leader is reaped
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    if (overdue_)
      fail(fmt::format("took longer than {:g} s and was killed", static_cast<double>(rules_.limit.count()) / 1e3));
    else if (WIFSIGNALED(status))
      fail(fmt::format("was ended by signal {}", WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
      fail(fmt::format("failed with code {}", WEXITSTATUS(status)));
  }
  if (!waiting_.empty()) start(now);
}

void EventHandler::start(Time now) {
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  const Delivery delivery = deliver_(current_);
  const FileDescriptor input = inputHolding(delivery.input);
  process_ = input ? spawn(delivery.command, input.get()) : -1;
  if (process_ < 0) return fail(fmt::format("cannot be started: {}: {}", delivery.command[0], std::strerror(errno)));
  overdue_ = false;
  deadline_ = now + rules_.limit;
}

Delivery deliveryByShell(const std::string& command, const std::string& eventLine) {
  return {{"env", "FALCON_EVENT_KIND=" + kindOf(eventLine), "sh", "-c", command}, eventLine + "\n"};
}

Delivery deliveryByPost(const std::string& url, std::chrono::milliseconds limit, const std::string& eventLine) {
  const std::string configuration = fmt::format(
      "silent\nshow-error\nfail\nproto = \"=http,https\"\noutput = \"/dev/null\"\nmax-time = {:.3f}\n"
      "header = \"Content-Type: application/json\"\nurl = {}\ndata-binary = {}\n",
      static_cast<double>(limit.count()) / 1e3, curlQuoted(url), curlQuoted(eventLine));
  return {{"curl", "-q", "--config", "-"}, configuration};
}

}  // namespace falcon::watch
