// A rank that uses the library as a program does, for tests that fork.
#pragma once

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "harness/forked_ranks.h"
#include "nccl_falcon.h"

namespace falcon::test {

inline cudaStream_t const hostStream = nullptr;

/// The ways between ranks of one node.
enum class Over { direct, memory, sockets };
inline constexpr Over everyWay[] = {Over::direct, Over::memory, Over::sockets};

/// In the rank, before a communicator is made.
inline void choose(Over over) {
  setenv("NCCL_SHM_DISABLE", over == Over::sockets ? "1" : "0", 1);
  setenv("NCCL_P2P_DISABLE", over == Over::direct ? "0" : "1", 1);
}

/// For the names of parametrised tests.
inline std::string nameOf(Over over) {
  constexpr const char* names[] = {"Direct", "Memory", "Sockets"};
  return names[static_cast<int>(over)];
}

/// What a call returned, in words.
inline std::string saying(const char* what, ncclResult_t result) {
  return std::string(what) + ": " + ncclGetErrorString(result) + ": " + ncclGetLastError(nullptr);
}

/// The id with that number on the board; rank 0 makes it. "" or what went wrong.
inline std::string agreeOnId(const SharedBoard& board, int number, int rank, ncclUniqueId& id) {
  if (rank == 0) {
    if (const auto made = ncclGetUniqueId(&id); made != ncclSuccess) return saying("ncclGetUniqueId", made);
    std::memcpy(board->ids[number], id.internal, sizeof id.internal);
    board->published[number].store(1);
    return "";
  }
  while (board->published[number].load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::memcpy(id.internal, board->ids[number], sizeof id.internal);
  return "";
}

/// Makes the communicator with that number on the board.
inline std::string makeCommunicator(const SharedBoard& board, int number, int rank, int size, ncclComm_t& comm) {
  ncclUniqueId id;
  if (auto wrong = agreeOnId(board, number, rank, id); !wrong.empty()) return wrong;
  const auto made = ncclCommInitRank(&comm, size, id, rank);
  return made == ncclSuccess ? "" : saying("ncclCommInitRank", made);
}

/// An AllReduce of `count` integers, checked. "" or what went wrong.
inline std::string sumIsRight(ncclComm_t comm, int rank, int size, std::size_t count) {
  std::vector<std::int32_t> in(count), out(count, -1);
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<std::int32_t>(i % 1000) + rank;
  const auto done = ncclAllReduce(in.data(), out.data(), count, ncclInt32, ncclSum, comm, hostStream);
  if (done != ncclSuccess) return saying("ncclAllReduce", done);
  for (std::size_t i = 0; i < count; ++i)
    if (out[i] != static_cast<std::int32_t>(i % 1000) * size + size * (size - 1) / 2)
      return "element " + std::to_string(i) + " of " + std::to_string(count) + " is wrong";
  return "";
}

/// Small, past what fits into a board's slot, and several chunks long.
inline std::string sumsAreRight(ncclComm_t comm, int rank, int size) {
  for (const std::size_t count : {2, 20'000, 700'000})
    if (auto wrong = sumIsRight(comm, rank, size, count); !wrong.empty()) return wrong;
  return "";
}

/// A file for the library's log of one rank; NCCL_DEBUG_FILE names it. Removed at the end.
class LogFile {
 public:
  explicit LogFile(int rank)
      : path_(testing::TempDir() + "falcon-fault-" + std::to_string(getpid()) + "-" + std::to_string(rank)) {}
  ~LogFile() { std::remove(path_.c_str()); }
  LogFile(const LogFile&) = delete;

  /// In the rank, before the library is used.
  void use(const char* level) const {
    setenv("NCCL_DEBUG", level, 1);
    setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
  }
  std::string text() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  const std::string path_;
};

inline std::size_t countOf(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// One log for each rank.
inline std::vector<std::unique_ptr<LogFile>> logsOf(int ranks) {
  std::vector<std::unique_ptr<LogFile>> logs;
  for (int rank = 0; rank < ranks; ++rank) logs.push_back(std::make_unique<LogFile>(rank));
  return logs;
}

}  // namespace falcon::test
