#include "machine/description.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/whole_file.h"
#include "json_text.h"

namespace falcon::tools {
namespace {

constexpr int schemaVersion = 1;

RankDescription parseRank(const nlohmann::json& one) {
  return {one.at("rank"),      one.at("pid"),     one.at("node"),  one.at("namespace"),
          one.at("interface"), one.at("address"), one.at("cgroup")};
}

}  // namespace

std::string toJson(const JobDescription& job) {
  nlohmann::ordered_json text{
      {"schema", schemaVersion},      {"job", job.job},    {"run", job.run}, {"launcher", job.launcher},
      {"supervisor", job.supervisor}, {"nodes", job.nodes}};
  text["ranks"] = nlohmann::ordered_json::array();
  for (const auto& rank : job.ranks)
    text["ranks"].push_back({{"rank", rank.rank},
                             {"pid", rank.process},
                             {"node", rank.node},
                             {"namespace", rank.netNamespace},
                             {"interface", rank.interface},
                             {"address", rank.address},
                             {"cgroup", rank.cgroup}});
  return jsonText(text, 2) + "\n";
}

Result<JobDescription> parseDescription(const std::string& json) try {
  const auto text = nlohmann::json::parse(json);
  if (const int schema = text.at("schema"); schema != schemaVersion)
    return Error::invalidArgument("schema {} of the job description is not known here (known: {})", schema,
                                  schemaVersion);
  JobDescription job{text.at("job"), text.at("run"), text.at("launcher"), text.at("supervisor"), text.at("nodes"), {}};
  for (const auto& one : text.at("ranks")) job.ranks.push_back(parseRank(one));
  for (size_t at = 0; at < job.ranks.size(); ++at)
    if (job.ranks[at].rank != static_cast<Rank>(at)) return Error::invalidArgument("the ranks are not in order");
  return job;
} catch (const nlohmann::json::exception& error) {
  return Error::invalidArgument("not a job description: {}", error.what());
}

Status writeDescription(const JobDescription& job, const std::string& path) {
  return writeWhole(path, toJson(job), forAllToRead);
}

Result<JobDescription> readDescription(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return Error::system("cannot read {}; it is what `falcon run --describe {}` writes when all ranks have started",
                         path, path);
  auto job = parseDescription(text.str());
  if (!job) return Error::invalidArgument("{}: {}", path, job.error().message());
  job->path = path;
  return job;
}

Result<RankDescription> rankOf(const JobDescription& job, Rank rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= job.ranks.size())
    return Error::invalidArgument("rank {} is not in the job: it has the ranks 0 to {}", rank, job.ranks.size() - 1);
  return job.ranks[static_cast<size_t>(rank)];
}

}  // namespace falcon::tools
