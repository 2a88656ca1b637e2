#include "metrics/command.h"

#include <fmt/format.h>
#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>
#include <signal.h>

#include <memory>
#include <mutex>
#include <string>

#include "base/socket_address.h"
#include "ending_signals.h"
#include "jobs/running_job.h"
#include "metrics/families.h"
#include "print.h"

namespace falcon::tools {
namespace {

struct MetricsOptions {
  std::string job, listen;
};

/// What Prometheus is answered: the state at the moment of the scrape.
class Ranks final : public prometheus::Collectable {
 public:
  explicit Ranks(const std::string& job) : book_(job) {}
  void update() const {
    const std::lock_guard lock(mutex_);
    book_.update();
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return book_.ranks().empty();
  }
  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex_);
    book_.update();
    return metrics::familiesOf(book_.ranks());
  }

 private:
  mutable std::mutex mutex_;
  mutable metrics::MetricsBook book_;
};

bool isLoopback(const SocketAddress& address) {
  return address.host().starts_with("127.") || address.host() == "::1" || address.host() == "[::1]";
}

int serve(const MetricsOptions& options) {
  const auto address = SocketAddress::parseNumeric(options.listen);
  if (!address) {
    print(stderr, "falcon metrics: {} is not an address and port, such as 127.0.0.1:9464\n", options.listen);
    return badUsage;
  }
  if (!isLoopback(*address)) {
    print(stderr,
          "falcon metrics: {} is not a loopback address; there is no password, so other hosts are not answered. "
          "Put a proxy before it, or let the node exporter read NCCL_FALCON_METRICS\n",
          options.listen);
    return badUsage;
  }
  // Blocked before there are threads, so that it is this one that waits for them.
  const sigset_t ends = blockEndingSignals();

  const auto ranks = std::make_shared<Ranks>(options.job);
  ranks->update();
  // It may come later: an exporter is often the first to start.
  if (!options.job.empty() && ranks->empty())
    print(stderr, "falcon metrics: {}; it is waited for\n", jobs::noRunningJob(options.job));
  std::unique_ptr<prometheus::Exposer> exposer;
  try {
    exposer = std::make_unique<prometheus::Exposer>(options.listen, 2);
  } catch (const std::exception&) {
    print(stderr, "falcon metrics: cannot listen at {}; is the port taken?\n", options.listen);
    return toolFailed;
  }
  exposer->RegisterCollectable(ranks);
  print(stderr, "falcon metrics: http://{}/metrics\n", options.listen);
  // The logs hold some ten thousand calls, so they are read also when nobody asks.
  const timespec second{1, 0};
  while (sigtimedwait(&ends, nullptr, &second) < 0) ranks->update();
  return healthy;
}

int showMetrics(const MetricsOptions& options) {
  if (!options.listen.empty()) return serve(options);
  metrics::MetricsBook book(options.job);
  book.update();
  if (!options.job.empty() && book.ranks().empty()) {
    print(stderr, "falcon metrics: {}\n", jobs::noRunningJob(options.job));
    return toolFailed;
  }
  fmt::print("{}", prometheus::TextSerializer().Serialize(metrics::familiesOf(book.ranks())));
  return healthy;
}

}  // namespace

void addMetricsCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<MetricsOptions>();
  CLI::App* command = app.add_subcommand(
      "metrics", "Prometheus metrics of the jobs that run on this host: on stdout, or over loopback HTTP");
  command->add_option("--listen", options->listen,
                      "Answer Prometheus here until Ctrl-C, e.g. 127.0.0.1:9464; loopback addresses only");
  command->add_option("--job", options->job, "Only this job, by its name");
  command->callback([options, &exitCode] { exitCode = showMetrics(*options); });
}

}  // namespace falcon::tools
