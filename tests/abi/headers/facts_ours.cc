#include "nccl.h"

#include "abi/facts.inc"

std::vector<falcon::abi::Fact> falcon::abi::factsOfOurs() {
  return table();
}
