// Small programs of the kernel's packet filter (eBPF) on what passes an interface: for losses and marks where there is
// no netem.
#pragma once

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/owned.h"

namespace falcon::net::test {

/// In a file system of such programs while this lives. Not in /sys/fs/bpf: `ip netns exec` puts another /sys before it.
class PacketProgram {
 public:
  enum class Deed { drop, mark };

  /// @param share  of the packets that it is done to, 0..1
  PacketProgram(Deed deed, double share) {
    const auto threshold = static_cast<std::int32_t>(share * 4294967295.0 / 2);
    // Half of the random number, so that the threshold fits a positive immediate.
    std::vector<bpf_insn> code{
        {BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0},         {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32},
        {BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 1},         {BPF_JMP | BPF_JLT | BPF_K, 0, 0, 2, threshold},
        {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, TC_ACT_OK}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
    };
    if (deed == Deed::drop) {
      code.push_back({BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, TC_ACT_SHOT});
    } else {
      code.push_back({BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0});
      code.push_back({BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_ecn_set_ce});
      code.push_back({BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, TC_ACT_OK});
    }
    code.push_back({BPF_JMP | BPF_EXIT, 0, 0, 0, 0});

    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    load.insns = reinterpret_cast<std::uint64_t>(code.data());
    load.insn_cnt = static_cast<std::uint32_t>(code.size());
    load.license = reinterpret_cast<std::uint64_t>("GPL");
    const FileDescriptor program(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load)));
    if (!program) return;
    if (!mkdtemp(folder_.data())) return;
    isMounted_ = mount("bpf", folder_.c_str(), "bpf", 0, nullptr) == 0;
    path_ = folder_ + "/program";
    bpf_attr pin{};
    pin.pathname = reinterpret_cast<std::uint64_t>(path_.c_str());
    pin.bpf_fd = static_cast<std::uint32_t>(program.get());
    isThere_ = syscall(SYS_bpf, BPF_OBJ_PIN, &pin, sizeof pin) == 0;
  }
  ~PacketProgram() {
    if (isMounted_) umount2(folder_.c_str(), MNT_DETACH);
    rmdir(folder_.c_str());
  }
  PacketProgram(const PacketProgram&) = delete;

  bool isThere() const { return isThere_; }
  const std::string& path() const { return path_; }

 private:
  std::string folder_ = "/tmp/falcon-bpf-XXXXXX", path_;
  bool isMounted_ = false, isThere_ = false;
};

}  // namespace falcon::net::test
