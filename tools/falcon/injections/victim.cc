#include "injections/victim.h"

#include <fmt/format.h>

namespace falcon::injections {

Victim::Victim(const SlowJob& job, const demo::Injection& injection, std::size_t number)
    : output_(job.file(fmt::format("injection-{}.json", number))),
      process_(demo::injectCommand(job.surroundings(), injection), {}, output_, output_ + ".err") {}

bool Victim::isSlowed() const {
  return errors().find("the victim is slowed") != std::string::npos;
}

nlohmann::json Victim::report() {
  process_.wait();
  return nlohmann::json::parse(demo::readFile(output_), nullptr, false);
}

}  // namespace falcon::injections
