#include "metrics/exporter.h"

#include <fmt/format.h>
#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>
#include <signal.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "ending_signals.h"
#include "jobs/running_job.h"
#include "metrics/families.h"
#include "print.h"

namespace falcon::tools {
namespace {

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

bool serve(const std::string& job, const std::string& listen) {
  // Blocked before there are threads, so that it is this one that waits for them.
  const sigset_t ends = blockEndingSignals();

  const auto ranks = std::make_shared<Ranks>(job);
  ranks->update();
  // It may come later: an exporter is often the first to start.
  if (!job.empty() && ranks->empty()) print(stderr, "falcon metrics: {}; it is waited for\n", jobs::noRunningJob(job));
  std::unique_ptr<prometheus::Exposer> exposer;
  try {
    exposer = std::make_unique<prometheus::Exposer>(listen, 2);
  } catch (const std::exception&) {
    print(stderr, "falcon metrics: cannot listen at {}; is the port taken?\n", listen);
    return false;
  }
  exposer->RegisterCollectable(ranks);
  print(stderr, "falcon metrics: http://{}/metrics\n", listen);
  // The logs hold some ten thousand calls, so they are read also when nobody asks.
  const timespec second{1, 0};
  while (sigtimedwait(&ends, nullptr, &second) < 0) ranks->update();
  return true;
}

bool printOnce(const std::string& job) {
  metrics::MetricsBook book(job);
  book.update();
  if (!job.empty() && book.ranks().empty()) {
    print(stderr, "falcon metrics: {}\n", jobs::noRunningJob(job));
    return false;
  }
  fmt::print("{}", prometheus::TextSerializer().Serialize(metrics::familiesOf(book.ranks())));
  return true;
}

}  // namespace
}  // namespace falcon::tools

extern "C" __attribute__((visibility("default"))) bool falconExportMetrics(const char* job, const char* listen) {
  using namespace falcon::tools;
  try {
    return *listen ? serve(job, listen) : printOnce(job);
  } catch (const std::exception& problem) {
    print(stderr, "falcon metrics: {}\n", problem.what());
    return false;
  }
}
