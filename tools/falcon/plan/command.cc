#include "plan/command.h"

#include <memory>
#include <string>

#include "plan/plan_text.h"

namespace falcon::tools {

void addPlanCommand(CLI::App& app, int& exitCode) {
  struct Options {
    std::string job;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* plan =
      app.add_subcommand("plan", "Show what Falcon does about what is slow, what waits for its price, and why");
  plan->add_option("job", options->job, "Name of the job; without, the newest that runs");
  plan->add_flag("--json", options->json, "As JSON on stdout");
  plan->callback([options, &exitCode] { exitCode = plan::showPlan(options->job, options->json); });
}

}  // namespace falcon::tools
