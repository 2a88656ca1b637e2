#include "algorithms.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "collectives/tuning.h"

namespace falcon::property {
namespace {

using collectives::algorithmsFor;
using collectives::Extent;

Extent extentOf(Over over) {
  return over == Over::memory || over == Over::shared ? Extent::node : Extent::network;
}

Operation operationOf(What what) {
  constexpr Operation operations[] = {Operation::allReduce, Operation::reduce,    Operation::reduceScatter,
                                      Operation::allGather, Operation::broadcast, Operation::allToAll,
                                      Operation::gather,    Operation::scatter,   Operation::send};
  return operations[static_cast<int>(what)];
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> algorithmsOver(Over over) {
  std::vector<std::string> all;
  for (int what = 0; what < collectiveCount; ++what)
    for (const std::string& name : algorithmsFor(operationOf(static_cast<What>(what)), extentOf(over)))
      if (!contains(all, name)) all.push_back(name);
  return all;
}

bool hasAlgorithm(What what, Over over, const std::string& algorithm) {
  return contains(algorithmsFor(operationOf(what), extentOf(over)), algorithm);
}

TuningFile::TuningFile(const std::string& algorithm)
    : path_(testing::TempDir() + "nccl_falcon_property_" + std::to_string(getpid()) + ".tuning") {
  std::ofstream file(path_);
  for (const Over over : {Over::memory, Over::sockets})
    for (int what = 0; what < collectiveCount; ++what) {
      const auto operation = operationOf(static_cast<What>(what));
      if (!contains(algorithmsFor(operation, extentOf(over)), algorithm)) continue;
      const collectives::TuningLine line{operation, extentOf(over), 2, 0, std::numeric_limits<std::size_t>::max(),
                                         algorithm};
      file << format(line) << '\n';
    }
}

TuningFile::~TuningFile() {
  std::filesystem::remove(path_);
}

}  // namespace falcon::property
