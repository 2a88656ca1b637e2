// Prints the facts of the nccl.h that it is compiled against, one a line: name, tab, value.
#include <nccl.h>

#include <cstdio>

#include "abi/facts.inc"

int main() {
  for (const falcon::abi::Fact& fact : table()) std::printf("%s\t%s\n", fact.name.c_str(), fact.value.c_str());
}
