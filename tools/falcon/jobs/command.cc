#include "jobs/command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/parameter.h"
#include "jobs/status_command.h"

namespace falcon::tools {

void addStatusCommand(CLI::App& app, int& exitCode) {
  struct Options {
    std::string job;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* status = app.add_subcommand("status", "Show the jobs of this user on this host, live or after a crash");
  status->add_option("job", options->job, "Name of one job; all without");
  status->add_flag("--json", options->json, "As JSON on stdout");
  status->callback([options, &exitCode] { exitCode = jobs::showStatus(options->job, options->json); });
}

void addOffCommand(CLI::App& app, int& exitCode) {
  auto job = std::make_shared<std::string>();
  CLI::App* off = app.add_subcommand("off", "Switch Falcon off in a running job");
  off->add_option("job", *job, "Name of the job, as `falcon status` shows it")->required();
  off->callback([job, &exitCode] { exitCode = jobs::switchOff(*job); });
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
    if (options->json) fmt::print("{}\n", list.dump(2));
  });
}

}  // namespace falcon::tools
