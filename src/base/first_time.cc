#include "base/first_time.h"

#include <mutex>
#include <set>

#include "base/per_process.h"

namespace falcon {
namespace {

struct Told {
  std::mutex mutex;
  std::set<std::string> texts;
};
constinit PerProcess<Told> told;

}  // namespace

bool firstTime(const std::string& what) {
  Told& here = told.get();
  const std::lock_guard lock(here.mutex);
  return here.texts.insert(what).second;
}

}  // namespace falcon
