#ifdef FALCON_HAS_VENDOR
#include <nccl.h>

#include "abi/facts.inc"

std::vector<falcon::abi::Fact> falcon::abi::factsOfVendors() {
  return table();
}
#else
#include "abi/facts.h"

std::vector<falcon::abi::Fact> falcon::abi::factsOfVendors() {
  return {};
}
#endif
