// The facts of a header that binary compatibility rests on, as text, so that two headers can be compared.
#pragma once

#include <string>
#include <vector>

namespace falcon::abi {

struct Fact {
  std::string name;
  std::string value;
};

std::vector<Fact> factsOfOurs();
/// Empty where the vendor's header is not on this machine.
std::vector<Fact> factsOfVendors();

}  // namespace falcon::abi
