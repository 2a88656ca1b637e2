#include "support/bundle.h"

#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "base/settings.h"
#include "events/event_tail.h"
#include "json_text.h"
#include "machine/program.h"
#include "report/metrics_text.h"
#include "report/page.h"
#include "support/job_page.h"

namespace falcon::support {
namespace {

namespace fs = std::filesystem;

/// A folder that nobody else can read, gone with the object.
class Stage {
 public:
  Stage() {
    std::string pattern = fs::temp_directory_path() / "falcon-bundle-XXXXXX";
    if (::mkdtemp(pattern.data())) path_ = pattern;
  }
  ~Stage() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string contentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What `falcon` itself says; its exit code tells of the job, and not whether it worked.
std::string said(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"sh", "-c", "\"$0\" \"$@\" 2>&1 || true",
                                      fs::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), words.begin(), words.end());
  const auto output = tools::runProgram({.command = command});
  return output ? *output : output.error().message();
}

std::string versions(const jobs::JobFiles& job) {
  utsname machine{};
  ::uname(&machine);
  std::string text =
      fmt::format("falcon {}\n{} {} {}\nglibc {}\n{} processors\n", report::version, machine.sysname, machine.release,
                  machine.machine, gnu_get_libc_version(), std::thread::hardware_concurrency());
  for (const jobs::RankFile& rank : job.ranks) {
    if (!rank.alive) continue;
    std::set<std::string> libraries;
    std::istringstream maps(contentOf(fmt::format("/proc/{}/maps", rank.view.pid)));
    for (std::string line; std::getline(maps, line);)
      if (const auto at = line.find('/'); at != std::string::npos && line.find("libnccl", at) != std::string::npos)
        libraries.insert(line.substr(at));
    for (const std::string& library : libraries)
      text += fmt::format("rank {}: {}\n", rank.view.identity.jobRank, library);
  }
  return text;
}

nlohmann::json environments(const jobs::JobFiles& job, std::string& problems) {
  nlohmann::json all = nlohmann::json::object();
  for (const jobs::RankFile& rank : job.ranks) {
    const std::string name = fmt::format("rank {}", rank.view.identity.jobRank);
    const std::string environment = contentOf(fs::path(rank.path).replace_extension(".settings"));
    if (environment.empty())
      problems += name + ": its settings cannot be read\n";
    else
      all[name] = settingsIn(environment);
  }
  return all;
}

}  // namespace

std::map<std::string, std::string> settingsIn(const std::string& environment) {
  std::map<std::string, std::string> settings;
  std::istringstream entries(environment);
  for (std::string entry; std::getline(entries, entry, '\0');) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals != std::string::npos && mayBeShown(name)) settings[name] = entry.substr(equals + 1);
  }
  return settings;
}

Status writeBundle(const std::string& path, const jobs::JobFiles& job) {
  const Stage stage;
  if (stage.path().empty()) return Error::system("no temporary folder can be made: {}", std::strerror(errno));
  const fs::path folder = stage.path() / "falcon-bundle";
  fs::create_directory(folder);
  std::string problems;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream file(folder / name, std::ios::binary);
    file << text;
    if (!file.flush()) problems += name + " could not be written\n";
  };
  write("report.html", report_page::renderHtml(pageOf(job)));
  write("status.json", said({"status", job.name, "--json"}));
  write("hang.json", said({"status", job.name, "--hang", "--json"}));
  write("metrics.txt", said({"metrics", "--job", job.name}));
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(job.folder, ignored))
    if (file.is_regular_file(ignored)) write(file.path().filename(), contentOf(file.path()));
  // They may lie elsewhere (NCCL_FALCON_EVENTS): then with the older files first.
  std::string lines;
  for (const std::string& line : events::allEvents(job.events, job.name)) lines += line + '\n';
  if (lines.empty())
    problems += "there are no events in " + job.events + ": none were written, or it cannot be read here\n";
  else if (fs::path(job.events).parent_path() != job.folder)
    write("events.jsonl", lines);
  write("environment.json", tools::jsonText(environments(job, problems), 2) + "\n");
  write("versions.txt", versions(job));
  if (!problems.empty()) write("problems.txt", problems);

  const mode_t before = ::umask(077);
  const auto packed = tools::runProgram({.command = {"tar", "--create", "--gzip", "--file", fs::absolute(path).string(),
                                                     "--directory", stage.path().string(), "falcon-bundle"}});
  ::umask(before);
  if (!packed) return packed.error();
  return {};
}

}  // namespace falcon::support
