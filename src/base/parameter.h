// The machinery of parameters: a row says name, default, range and meaning once; reading, warnings and the reference
// page come from the row. The rows are in parameters.h.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "base/result.h"

namespace falcon {

/// What the reference page shows of a parameter.
class ParameterRow {
 public:
  constexpr ParameterRow(const char* name, const char* description) : name_(name), description_(description) {}
  constexpr const char* name() const { return name_; }
  constexpr const char* description() const { return description_; }
  virtual std::string typeText() const = 0;
  virtual std::string defaultText() const = 0;
  virtual std::string rangeText() const = 0;
  /// The value in force, as it would be set.
  virtual std::string valueText() const = 0;

 protected:
  ~ParameterRow() = default;  // rows live as long as the program
  /// The configured text, or nothing. A bad value is noticed once a process, with its remedy, and the default is used.
  std::optional<std::string> text() const;
  void reject(std::string_view value) const;

 private:
  const char* name_;
  const char* description_;
};

/// A whole number; `value()` reads the environment each time: read it at init, not per call.
class IntegerParameter final : public ParameterRow {
 public:
  constexpr IntegerParameter(const char* name, std::int64_t fallback, std::int64_t low, std::int64_t high,
                             const char* description)
      : ParameterRow(name, description), fallback_(fallback), low_(low), high_(high) {}
  std::int64_t value() const;
  bool isSet() const { return text().has_value(); }
  std::string typeText() const override { return "integer"; }
  std::string defaultText() const override;
  std::string rangeText() const override;
  std::string valueText() const override { return std::to_string(value()); }

 private:
  std::int64_t fallback_, low_, high_;
};

/// A number, e.g. a percentage.
class NumberParameter final : public ParameterRow {
 public:
  constexpr NumberParameter(const char* name, double fallback, double low, double high, const char* description)
      : ParameterRow(name, description), fallback_(fallback), low_(low), high_(high) {}
  double value() const;
  double fallback() const { return fallback_; }
  double low() const { return low_; }
  double high() const { return high_; }
  std::string typeText() const override { return "number"; }
  std::string defaultText() const override;
  std::string rangeText() const override;
  std::string valueText() const override { return fmt::format("{}", value()); }

 private:
  double fallback_, low_, high_;
};

/// 0 or 1.
class SwitchParameter final : public ParameterRow {
 public:
  constexpr SwitchParameter(const char* name, bool fallback, const char* description)
      : ParameterRow(name, description), fallback_(fallback) {}
  bool value() const;
  std::string typeText() const override { return "0 or 1"; }
  std::string defaultText() const override { return fallback_ ? "1" : "0"; }
  std::string rangeText() const override { return "0, 1"; }
  std::string valueText() const override { return value() ? "1" : "0"; }

 private:
  bool fallback_;
};

/// A duration: a number with ms, s, m or h ("500ms", "10s"); a bare number is seconds.
class DurationParameter final : public ParameterRow {
 public:
  constexpr DurationParameter(const char* name, Nanoseconds fallback, Nanoseconds low, Nanoseconds high,
                              const char* description)
      : ParameterRow(name, description), fallback_(fallback), low_(low), high_(high) {}
  Nanoseconds value() const;
  std::string typeText() const override { return "duration"; }
  std::string defaultText() const override;
  std::string rangeText() const override;
  std::string valueText() const override;

 private:
  Nanoseconds fallback_, low_, high_;
};

/// Any text.
class TextParameter final : public ParameterRow {
 public:
  constexpr TextParameter(const char* name, const char* fallback, const char* description)
      : ParameterRow(name, description), fallback_(fallback) {}
  std::string value() const;
  bool isSet() const { return text().has_value(); }
  std::string typeText() const override { return "text"; }
  std::string defaultText() const override { return fallback_; }
  std::string rangeText() const override { return "any"; }
  std::string valueText() const override { return value(); }

 private:
  const char* fallback_;
};

/// One of a few words; the value is the word's place in the list.
class ChoiceParameter final : public ParameterRow {
 public:
  constexpr ChoiceParameter(const char* name, std::span<const char* const> words, int fallback, const char* description)
      : ParameterRow(name, description), words_(words), fallback_(fallback) {}
  int value() const;
  std::string typeText() const override { return "word"; }
  std::string defaultText() const override { return words_[fallback_]; }
  std::string rangeText() const override;
  std::string valueText() const override { return words_[value()]; }

 private:
  std::span<const char* const> words_;
  int fallback_;
};

/// All parameters, in the order of the reference page.
std::span<const ParameterRow* const> allParameters();

/// `NCCL_FALCON_*` names in the environment that no row declares: most likely a typing error.
std::vector<std::string> unknownParameters();

/// The reference page, docs/environment.md.
std::string parameterReference();

}  // namespace falcon
