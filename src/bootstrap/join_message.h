// What the ranks of a communicator-to-be and their rendezvous say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bootstrap/member.h"

namespace falcon::bootstrap {

/// What a rank tells the rendezvous (in the hello's payload).
struct JoinRequest {
  int size = 0;
  Member member;
  std::string withdrawal{};  ///< why it does not join after all; then it need not have an address
  std::string encode() const;
  static bool decode(std::string_view bytes, JoinRequest& request);
};

/// What the rendezvous answers.
struct JoinAnswer {
  enum class Kind : std::uint8_t { table, refused, over } kind = Kind::refused;
  CommunicatorId communicator = 0;
  std::vector<Member> members;           ///< table
  ErrorCode code = ErrorCode::internal;  ///< refused: why (also after the table, when a rank died meanwhile)
  std::string text;
  std::string encode() const;
  static bool decode(std::string_view bytes, JoinAnswer& answer);
};

}  // namespace falcon::bootstrap
