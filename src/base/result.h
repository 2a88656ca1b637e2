// Errors are values. The first place that decides an error logs it; callers only pass it on.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/format.h"

namespace falcon {

/// The codes of ncclResult_t, number for number, so that the C ABI translates by a cast.
enum class ErrorCode {
  unhandledCuda = 1,
  system = 2,
  internal = 3,
  invalidArgument = 4,
  invalidUsage = 5,
  remote = 6,
  inProgress = 7
};

/// Why something could not be done, in words that name the value and the remedy.
class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  template <class... Args>
  static Error system(fmt::format_string<Args...> text, Args&&... args) {
    return Error(ErrorCode::system, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  static Error internal(fmt::format_string<Args...> text, Args&&... args) {
    return Error(ErrorCode::internal, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  static Error invalidArgument(fmt::format_string<Args...> text, Args&&... args) {
    return Error(ErrorCode::invalidArgument, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  static Error invalidUsage(fmt::format_string<Args...> text, Args&&... args) {
    return Error(ErrorCode::invalidUsage, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  static Error remote(fmt::format_string<Args...> text, Args&&... args) {
    return Error(ErrorCode::remote, fmt::format(text, std::forward<Args>(args)...));
  }

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

/// A value, or the error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return content_.index() == 0; }
  T& operator*() & { return std::get<0>(content_); }
  const T& operator*() const& { return std::get<0>(content_); }
  T&& operator*() && { return std::get<0>(std::move(content_)); }
  T* operator->() { return &std::get<0>(content_); }
  const T* operator->() const { return &std::get<0>(content_); }
  const Error& error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Error> content_;
};

/// Done, or the error that prevented it.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};
using Status = Result<void>;

}  // namespace falcon
