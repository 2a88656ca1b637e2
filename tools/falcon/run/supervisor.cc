#include "run/supervisor.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/clock.h"
#include "base/own_files.h"
#include "base/socket_address.h"
#include "machine/net_namespace.h"
#include "machine/processes.h"
#include "subcommand.h"

namespace falcon::tools {
namespace {

constexpr int portInsideNodes = 29'500;  // torchrun's; nobody else is in the nodes' network
constexpr int cannotExecute = 127;

std::vector<int> usableCores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  return cores;
}

// The port of the loopback interface, 0 for any that the kernel gives, where nobody uses it at this moment; else 0.
int portIfFree(int wanted) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(wanted));
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, length) != 0 || ::getsockname(socket.get(), generic, &length) != 0) return 0;
  return ntohs(address.sin_port);
}

// One below those that the kernel gives to whoever asks for any: until the first rank listens nobody gets it by chance.
int freePort() {
  constexpr int first = 20'000, tries = 100;
  int end = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> end;
  std::random_device random;
  for (int i = 0; i < tries && end > first; ++i)
    if (const int port = portIfFree(first + static_cast<int>(random() % static_cast<unsigned>(end - first))))
      return port;
  const int any = portIfFree(0);
  return any != 0 ? any : portInsideNodes;
}

/// Of our libnccl.so.2: where the preload library is, whose name nobody else's has.
std::string libraryFolder() {
  const auto library = ownLibrary("libnccl-falcon.so");
  return library ? std::filesystem::path(*library).parent_path().string() : ownFolder() + "/../lib";
}

int exitCodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// What keeps strangers out of a job whose rendezvous is at a known address.
std::string newSecret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

void cleanUp(const RunPlan& plan) {
  if (plan.cpuController && !removeJobCgroups(*plan.cpuController, plan.run))
    fmt::print(stderr, "falcon run: the cgroup falcon-{} could not be removed from {}\n", plan.run,
               plan.cpuController->string());
  std::error_code ignored;
  if (!plan.restartFolder.empty()) std::filesystem::remove_all(plan.restartFolder, ignored);
}

Supervisor::Supervisor(RunPlan plan, FileDescriptor lifeline)
    : plan_(std::move(plan)),
      lifeline_(std::move(lifeline)),
      restarts_(plan_.options.ranks, plan_.options.restarts, plan_.options.spares) {
  ::setsid();  // signals from a terminal reach the launcher only, which passes them on once
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  signals_.reset(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
}

int Supervisor::run() {
  if (auto ready = prepare(); !ready) {
    fmt::print(stderr, "falcon run: {}\n", ready.error().message());
    cleanUp(plan_);
    return toolFailed;
  }
  int code = healthy;
  do {
    setOut();
    const auto ended = runOnce();
    if (!ended) fmt::print(stderr, "falcon run: {}\n", ended.error().message());
    code = ended ? *ended : toolFailed;
    if (!ended || cannotExecute_) break;
  } while (goesOn(code));
  cleanUp(plan_);
  return code == healthy && lostOutput_ ? toolFailed : code;
}

Result<int> Supervisor::runOnce() {
  const auto started = startRanks();
  if (!started || *started != 0) {
    killDescendants({}, 5s);
    return started;
  }
  relay_->start();
  superviseRanks();
  // What ranks left behind would hold the streams open, and is not to outlive the job.
  killDescendants({}, 5s);
  messages_.reset();
  relay_->finish();
  lostOutput_ = lostOutput_ || relay_->lostOutput();
  return failure_.value_or(healthy);
}

/// Whether the job is started again; says so.
bool Supervisor::goesOn(int code) {
  passOnSignals();  // who asked between two attempts asked for the end
  AttemptEnd end{code, asked_, {}};
  const std::string file = settings_.restartFile;
  if (std::ifstream content(file); !file.empty() && content) {
    auto request = parseRestartRequest({std::istreambuf_iterator<char>(content), {}});
    if (request)
      end.request = std::move(*request);
    else
      fmt::print(stderr, "falcon run: the request in {} is not heeded: {}\n", file, request.error().message());
  }
  const RestartPolicy::Next next = restarts_.after(end);
  if (!next.text.empty()) fmt::print(stderr, "falcon run: {}\n", next.text);
  return next.again;
}

/// What is another one in each attempt.
void Supervisor::setOut() {
  places_ = placeRanks(plan_.options, usableCores(), restarts_.places());
  settings_.restarted = restarts_.restarted();
  settings_.secret = newSecret();
  settings_.masterPort = freePort();
  if (network_) {
    settings_.masterAddress = addressOf(places_.front().place);
    settings_.masterPort = portInsideNodes + settings_.restarted;
  }
  processes_.clear();
  running_.clear();
  policy_ = {};
  failure_.reset();
  relay_.emplace();
  std::error_code ignored;
  if (!settings_.restartFile.empty()) std::filesystem::remove(settings_.restartFile, ignored);
}

Status Supervisor::prepare() {
  settings_ = {plan_.run, plan_.job, plan_.options.ranks, plan_.options.nodes, "127.0.0.1", 0, libraryFolder(), ""};
  settings_.restarts = plan_.options.restarts;
  if (settings_.restarts > 0) {
    const Environment inherited = ownEnvironment();
    const auto chosen = inherited.find("NCCL_FALCON_RESTART_FILE");
    const bool isChosen = chosen != inherited.end() && !chosen->second.empty();
    settings_.restartFile = isChosen ? chosen->second : plan_.restartFolder + "/restart.json";
  }
  if (plan_.options.nodes > 0) {
    auto network = NodeNetwork::make(allPlaces(plan_.options));
    if (!network) return network.error();
    network_ = std::move(*network);
  }
  if (!plan_.cpuController) return {};
  removeStaleJobCgroups(*plan_.cpuController);
  auto cgroups = makeJobCgroups(*plan_.cpuController, plan_.run, plan_.options.ranks + plan_.options.spares);
  if (cgroups) {
    cgroups_ = *cgroups;
  } else if (plan_.options.cgroups == UseCgroups::must) {
    return cgroups.error();
  }
  return {};
}

Result<int> Supervisor::startRanks() {
  auto messages = relay_->addStream(STDERR_FILENO, "");
  if (!messages) return messages.error();
  messages_ = std::move(*messages);
  for (const auto& place : places_) {
    const auto started = startRank(place);
    if (started) continue;
    if (started.error().code() != ErrorCode::invalidArgument) return started.error();
    fmt::print(stderr, "falcon run: {}\n", started.error().message());
    cannotExecute_ = true;
    return cannotExecute;
  }
  if (auto described = describe(); !described) return described.error();
  return 0;
}

Status Supervisor::startRank(const RankPlacement& place) {
  const std::string prefix = fmt::format("[{}] ", place.rank);
  const auto output = relay_->addStream(STDOUT_FILENO, prefix);
  if (!output) return output.error();
  const auto errors = relay_->addStream(STDERR_FILENO, prefix);
  if (!errors) return errors.error();

  RankStart start{place,
                  environmentOf(place, settings_, ownEnvironment()),
                  &plan_.options.program,
                  {},
                  -1,
                  output->get(),
                  errors->get(),
                  plan_.signalMask};
  if (cgroups_) start.cgroup = cgroups_->ranks[static_cast<size_t>(place.place)];
  if (network_) start.netNamespace = network_->descriptorOf(place.node);
  const auto process = tools::startRank(start);
  if (!process) return process.error();
  processes_.push_back(*process);
  running_[*process] = {place};
  return {};
}

Status Supervisor::describe() {
  if (plan_.options.describe.empty()) return {};
  JobDescription job{plan_.job, plan_.run, plan_.launcher, ::getpid(), plan_.options.nodes, {}};
  for (const auto& place : places_) {
    const auto at = static_cast<size_t>(place.rank);
    RankDescription rank{place.rank, processes_[at], place.node, "", "", "", ""};
    if (network_) {
      rank.netNamespace = pathOfNetNamespace(::getpid(), network_->descriptorOf(place.node));
      rank.interface = interfaceOf(place.place);
      rank.address = addressOf(place.place);
    }
    if (cgroups_) rank.cgroup = cgroups_->ranks[static_cast<size_t>(place.place)].path();
    job.ranks.push_back(std::move(rank));
  }
  return writeDescription(job, plan_.options.describe);
}

void Supervisor::superviseRanks() {
  while (!running_.empty()) {
    waitForNews();
    passOnSignals();
    reapAll();
    act(policy_.due(SystemClock::instance().now()));
  }
}

void Supervisor::waitForNews() {
  pollfd watched[] = {{signals_.get(), POLLIN, 0}, {lifeline_.get(), POLLIN, 0}};
  timespec wait{};
  if (const auto next = policy_.next()) {
    const auto left = std::max(Nanoseconds(0), *next - SystemClock::instance().now());
    wait = {left / 1s, (left % 1s).count()};
  }
  ::ppoll(watched, 2, policy_.next() ? &wait : nullptr, nullptr);
  if (watched[1].revents != 0) abandon();
}

void Supervisor::passOnSignals() {
  signalfd_siginfo news;
  while (::read(signals_.get(), &news, sizeof news) == sizeof news) {
    const int signal = static_cast<int>(news.ssi_signo);
    if (signal == SIGCHLD) continue;
    // What ends a job goes to a rank's whole group, as from a terminal; the rest only to who may have a handler for it.
    const bool toGroup = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    // Who heard of another one's end before its own signal would speak of it.
    const bool quietly = toGroup && plan_.options.quietWhenAsked;
    const auto pass = [&](int number) {
      for (const auto& [process, rank] : running_) ::kill(toGroup ? -process : process, number);
    };
    if (quietly) pass(SIGSTOP);
    pass(signal);
    if (quietly) pass(SIGCONT);
    asked_ = asked_ || toGroup;
    policy_.signalPassedOn(signal, SystemClock::instance().now());
  }
}

// Several ranks may be found dead at once, in no particular order: one that a signal killed is then the cause.
void Supervisor::reapAll() {
  std::vector<std::pair<pid_t, int>> ended;
  int status = 0;
  for (pid_t process; (process = ::waitpid(-1, &status, WNOHANG)) > 0;)
    if (running_.contains(process)) ended.emplace_back(process, status);
  std::stable_partition(ended.begin(), ended.end(), [](const auto& one) { return WIFSIGNALED(one.second); });
  for (const auto& [process, how] : ended) {
    const Running rank = running_[process];
    running_.erase(process);
    if (exitCodeOf(how) != 0) report(rank, process, how);
  }
}

void Supervisor::report(const Running& rank, int process, int status) {
  if (rank.killed)
    say(fmt::format("rank {} (process {}) did not end in time and was killed", rank.place.rank, process));
  if (failure_) return;
  failure_ = exitCodeOf(status);
  policy_.rankFailed(SystemClock::instance().now());
  if (asked_ && plan_.options.quietWhenAsked) return;
  const std::string how =
      WIFSIGNALED(status) ? fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                          : fmt::format("ended with code {}", WEXITSTATUS(status));
  const std::string node = plan_.options.nodes > 0 ? fmt::format(", node {}", rank.place.node) : "";
  say(fmt::format("rank {} (process {}{}) {}{}", rank.place.rank, process, node, how,
                  running_.empty() ? "" : "; ending the others"));
}

void Supervisor::act(EndPolicy::Action action) {
  if (action == EndPolicy::Action::none) return;
  const bool kill = action == EndPolicy::Action::kill;
  for (auto& [process, rank] : running_) {
    rank.killed = kill;
    ::kill(-process, kill ? SIGKILL : SIGTERM);
  }
}

void Supervisor::say(const std::string& text) {
  const std::string line = "falcon run: " + text + "\n";
  (void)!::write(messages_.get(), line.data(), line.size());
}

// The reader of our output may block the relay: nothing is waited for, and the process ends without destructors.
void Supervisor::abandon() {
  killDescendants({}, 5s);
  cleanUp(plan_);
  ::_exit(toolFailed);
}

}  // namespace falcon::tools
