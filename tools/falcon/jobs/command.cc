#include "jobs/command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/parameter.h"
#include "jobs/hang_command.h"
#include "jobs/net_command.h"
#include "jobs/status_command.h"
#include "json_text.h"
#include "number_rules.h"

namespace falcon::tools {

void addStatusCommand(CLI::App& app, int& exitCode) {
  struct Options {
    std::string job;
    bool json = false;
    bool hang = false;
    bool net = false;
    std::optional<double> patience;
    std::vector<std::string> recordings;
  };
  auto options = std::make_shared<Options>();
  CLI::App* status = app.add_subcommand("status", "Show the jobs of this user on this host, live or after a crash");
  CLI::Option* job = status->add_option("job", options->job, "Name of one job; all without");
  status->add_flag("--json", options->json, "As JSON on stdout");
  CLI::Option* hang = status->add_flag(
      "--hang", options->hang, "Who holds up whom: who has not entered which call, and where each other rank waits");
  status->add_flag("--net", options->net, "How congested the network is, by what net plugins tell (docs/net-state.md)")
      ->excludes(hang);
  status
      ->add_option("--patience", options->patience,
                   "How many seconds a call may last; without: 5, or three iterations where they take longer")
      ->check(numberFrom(0, 1e6))
      ->needs(hang);
  status
      ->add_option("--recording", options->recordings,
                   "Of recordings of `falcon record` instead, one of each host: ranks of several hosts together")
      ->needs(hang)
      ->excludes(job);
  status->callback([options, &exitCode] {
    if (!options->recordings.empty())
      exitCode = jobs::showRecordedHang(options->recordings, options->patience, options->json);
    else if (options->net)
      exitCode = jobs::showNet(options->job, options->json);
    else
      exitCode = options->hang ? jobs::showHang(options->job, options->patience, options->json)
                               : jobs::showStatus(options->job, options->json);
  });
}

void addOffCommand(CLI::App& app, int& exitCode) {
  auto job = std::make_shared<std::string>();
  CLI::App* off = app.add_subcommand("off", "Switch Falcon off in a running job");
  off->add_option("job", *job, "Name of the job, as `falcon status` shows it")->required();
  off->callback([job, &exitCode] { exitCode = jobs::switchOff(*job); });
}

void addSuspendCommand(CLI::App& app, int& exitCode) {
  struct Options {
    std::string job;
    int seconds = 10;
  };
  auto options = std::make_shared<Options>();
  CLI::App* suspend = app.add_subcommand("suspend", "Hold a running job wherever it is in the library");
  suspend->add_option("job", options->job, "Name of the job, as `falcon status` shows it")->required();
  suspend->add_option("--for", options->seconds, "Seconds after which it goes on by itself")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  suspend->callback([options, &exitCode] { exitCode = jobs::suspend(options->job, options->seconds); });
}

void addResumeCommand(CLI::App& app, int& exitCode) {
  auto job = std::make_shared<std::string>();
  CLI::App* resume = app.add_subcommand("resume", "Let a suspended job go on");
  resume->add_option("job", *job, "Name of the job, as `falcon status` shows it")->required();
  resume->callback([job, &exitCode] { exitCode = jobs::resume(*job); });
}

void addParametersCommand(CLI::App& app, int&) {
  struct Options {
    bool markdown = false;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* parameters = app.add_subcommand("parameters", "List the NCCL_FALCON_* settings");
  parameters->add_flag("--markdown", options->markdown, "The reference page, docs/environment.md");
  parameters->add_flag("--json", options->json, "As JSON on stdout");
  parameters->callback([options] {
    if (options->markdown) {
      fmt::print("{}", parameterReference());
      return;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const ParameterRow* row : allParameters()) {
      if (options->json)
        list.push_back({{"name", row->name()},
                        {"type", row->typeText()},
                        {"default", row->defaultText()},
                        {"range", row->rangeText()},
                        {"description", row->description()}});
      else
        fmt::print("{:<34} {:<10} default {:<8} {}\n    {}\n", row->name(), row->typeText(),
                   row->defaultText().empty() ? "(empty)" : row->defaultText(), row->rangeText(), row->description());
    }
    if (options->json) fmt::print("{}\n", jsonText(list, 2));
  });
}

}  // namespace falcon::tools
