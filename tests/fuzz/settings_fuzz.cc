// What people write: nccl.conf, NCCL_ALGO, the file of throttled links.
#include "base/config_file.h"
#include "collectives/algorithm_preference.h"
#include "fuzz_target.h"
#include "transport/link_throttle.h"

namespace falcon::fuzz {
namespace {

void tryConfiguration(std::string_view text) {
  const auto settings = parseConfigFile(text);
  std::string written;
  for (const auto& [name, value] : settings) {
    require(!name.empty() && name.find('=') == std::string::npos && name.find('\n') == std::string::npos,
            "a name is one");
    written += name + "=" + value + "\n";
  }
  require(parseConfigFile(written) == settings, "settings keep their meaning");
}

void tryPreferences(std::string_view text) {
  const auto preferences = collectives::parsePreferences(text, collectives::algorithmWords());
  if (!preferences) require(!preferences.error().message().empty(), "a refusal says why");
}

}  // namespace

// The first byte says which reader gets the rest.
std::vector<std::string> seeds() {
  const std::string_view kinds("\0\1\2", 3);
  return {kinds[0] + std::string("# comment\nNCCL_DEBUG=INFO\n NCCL_ALGO = ring \r\n=x\nNCCL_A\n"),
          kinds[1] + std::string("ring"), kinds[1] + std::string("^tree,ring;allreduce:tree;broadcast:^ring"),
          kinds[1] + std::string("NVLS,PAT;AllReduce:Tree,Ring"),
          kinds[2] + std::string("# from to rate\n0 1 125000000\n1 0 1e6\n")};
}

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string_view text = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % 3) {
    case 0:
      return tryConfiguration(text);
    case 1:
      return tryPreferences(text);
    default:
      const auto rate = transport::throttledRate(text, {0, 1});
      require(!rate || *rate > 0, "a rate is positive");
  }
}

}  // namespace falcon::fuzz
