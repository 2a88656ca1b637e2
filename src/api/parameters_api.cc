// nccl.h: the parameters of the library as they are in force. Those that we have are ours, whoever moves the data;
// where the vendor's library is in use, all others are asked of it.
#include "api/exports.h"

#include <charconv>
#include <cstring>
#include <span>

#include "api/passed_on.h"
#include "base/parameter.h"
#include "base/settings.h"

using namespace falcon;
using namespace falcon::api;

namespace {

const ParameterRow* rowNamed(std::string_view name) {
  for (const ParameterRow* row : allParameters())
    if (row->name() == name) return row;
  return nullptr;
}

const ParameterRow* rowOf(ncclParamHandle_t handle) {
  for (const ParameterRow* row : allParameters())
    if (static_cast<const void*>(row) == handle) return row;
  return nullptr;
}

/// A handle is the row's address, which the vendor's handles never are.
ncclParamHandle_t handleOf(const ParameterRow* row) {
  return reinterpret_cast<ncclParamHandle_t>(const_cast<ParameterRow*>(row));
}

/// This thread's, until its next call.
struct Texts {
  std::string value;
  std::vector<const char*> keys;
  static Texts& ofThisThread() {
    thread_local Texts texts;
    return texts;
  }
};

/// The row, where it is one of ours; null: the vendor's library is to be asked.
Result<const ParameterRow*> ours(const char* function, ncclParamHandle_t handle) {
  if (!handle) return log::decided(Error::invalidArgument("{}: the handle is NULL", function));
  if (const ParameterRow* const row = rowOf(handle)) return row;
  if (Process::instance().vendorLibrary()) return nullptr;
  return log::decided(
      Error::invalidArgument("{}: the handle did not come from ncclParamBind of this library", function));
}

/// What is alike in reading by a handle: `read` gets the row where it is ours, else the vendor's function is called.
template <class Function, class Read, class... Arguments>
ncclResult_t get(const char* function, ncclParamHandle_t handle, const void* out, Read&& read, Arguments... arguments) {
  bool isOurs = false;
  const ncclResult_t looked = guarded(function, [&]() -> Status {
    if (const Status given = requireOutput(function, "out", out); !given) return given;
    const auto row = ours(function, handle);
    if (!row) return row.error();
    isOurs = *row != nullptr;
    return isOurs ? read(**row) : Status();
  });
  if (looked != ncclSuccess || isOurs) return looked;
  return passOn<Function>(function, [&](auto* theirs) { return theirs(handle, arguments...); });
}

std::string shownValue(const ParameterRow& row) {
  return mayBeShown(row.name()) ? row.valueText() : "(not shown)";
}

template <class Number>
ncclResult_t getNumber(const char* function, ncclParamHandle_t handle, Number* out) {
  const auto read = [&](const ParameterRow& row) -> Status {
    const std::string text = row.valueText();
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      return log::decided(Error::invalidArgument("{}: {} is '{}', which does not fit into that type", function,
                                                 row.name(), shownValue(row)));
    *out = number;
    return {};
  };
  return get<ncclResult_t(ncclParamHandle_t, Number*)>(function, handle, out, read, out);
}

/// Until this thread's next call.
const std::string& keep(std::string text) {
  return Texts::ofThisThread().value = std::move(text);
}

/// By its name. Errors (invalidArgument): there is no such parameter.
Result<const ParameterRow*> rowOrError(const char* function, const char* key) {
  if (const ParameterRow* const row = rowNamed(key)) return row;
  return log::decided(Error::invalidArgument("{}: there is no parameter '{}'", function, key));
}

/// Names that we do not have are the vendor's, where its library is in use.
bool isForVendor(const char* key) {
  return key && !rowNamed(key) && Process::instance().vendorLibrary();
}

/// The names that the vendor's library has; none where it is not in use, or knows no parameters.
std::span<const char* const> keysOfVendor() {
  constexpr const char* function = "ncclParamGetAllParameterKeys";
  const auto library = Process::instance().vendorLibrary();
  const auto theirs = library ? library->find<decltype(ncclParamGetAllParameterKeys)>(function) : nullptr;
  const char** table = nullptr;
  int length = 0;
  if (!theirs || theirs(&table, &length) != ncclSuccess || !table || length < 0) return {};
  return {table, static_cast<std::size_t>(length)};
}

}  // namespace

extern "C" {

ncclResult_t pncclParamBind(ncclParamHandle_t* out, const char* key) {
  constexpr const char* function = "ncclParamBind";
  if (isForVendor(key))
    return passOn<decltype(ncclParamBind)>(function, [&](auto* theirs) { return theirs(out, key); });
  return guarded(function, [&]() -> Status {
    if (const Status given = requireOutput(function, "out", out); !given) return given;
    if (const Status given = requireOutput(function, "key", key); !given) return given;
    const auto row = rowOrError(function, key);
    if (!row) return row.error();
    *out = handleOf(*row);
    return {};
  });
}

ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t* out) {
  return getNumber("ncclParamGetI8", h, out);
}
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t* out) {
  return getNumber("ncclParamGetI16", h, out);
}
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t* out) {
  return getNumber("ncclParamGetI32", h, out);
}
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t* out) {
  return getNumber("ncclParamGetI64", h, out);
}
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t* out) {
  return getNumber("ncclParamGetU8", h, out);
}
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t* out) {
  return getNumber("ncclParamGetU16", h, out);
}
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t* out) {
  return getNumber("ncclParamGetU32", h, out);
}
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t* out) {
  return getNumber("ncclParamGetU64", h, out);
}

ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char** out) {
  const auto read = [&](const ParameterRow& row) -> Status {
    *out = keep(row.valueText()).c_str();
    return {};
  };
  return get<decltype(ncclParamGetStr)>("ncclParamGetStr", h, out, read, out);
}

ncclResult_t pncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  constexpr const char* function = "ncclParamGet";
  const auto read = [&](const ParameterRow& row) -> Status {
    const std::string text = row.valueText();
    const int bytes = static_cast<int>(text.size()) + 1;
    if (len) *len = bytes;
    if (bytes > maxLen)
      return log::decided(
          Error::invalidArgument("{}: {} has {} bytes, and maxLen is {}", function, row.name(), bytes, maxLen));
    std::memcpy(out, text.c_str(), static_cast<std::size_t>(bytes));
    return {};
  };
  return get<decltype(ncclParamGet)>(function, h, out, read, out, maxLen, len);
}

ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  constexpr const char* function = "ncclParamGetParameter";
  if (isForVendor(key))
    return passOn<decltype(ncclParamGetParameter)>(function,
                                                   [&](auto* theirs) { return theirs(key, value, valueLen); });
  return guarded(function, [&]() -> Status {
    if (const Status given = requireOutput(function, "key", key); !given) return given;
    if (const Status given = requireOutput(function, "value", value); !given) return given;
    const auto row = rowOrError(function, key);
    if (!row) return row.error();
    const std::string& text = keep((*row)->valueText());
    *value = text.c_str();
    if (valueLen) *valueLen = static_cast<int>(text.size());
    return {};
  });
}

/// Ours, and those that only the vendor's library has, where that is in use.
ncclResult_t pncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  constexpr const char* function = "ncclParamGetAllParameterKeys";
  return guarded(function, [&]() -> Status {
    if (const Status given = requireOutput(function, "table", table); !given) return given;
    if (const Status given = requireOutput(function, "tableLen", tableLen); !given) return given;
    auto& keys = Texts::ofThisThread().keys;
    keys.clear();
    for (const ParameterRow* row : allParameters()) keys.push_back(row->name());
    for (const char* const key : keysOfVendor())
      if (!rowNamed(key)) keys.push_back(key);
    *table = keys.data();
    *tableLen = static_cast<int>(keys.size());
    return {};
  });
}

void pncclParamDumpAll(void) {
  (void)guarded("ncclParamDumpAll", []() -> Status {
    for (const ParameterRow* row : allParameters()) log::info("{}={}", row->name(), shownValue(*row));
    if (const auto library = Process::instance().vendorLibrary())
      if (const auto theirs = library->find<decltype(ncclParamDumpAll)>("ncclParamDumpAll")) theirs();
    return {};
  });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclParamBind);
FALCON_WEAK_TWIN(ncclParamGetI8);
FALCON_WEAK_TWIN(ncclParamGetI16);
FALCON_WEAK_TWIN(ncclParamGetI32);
FALCON_WEAK_TWIN(ncclParamGetI64);
FALCON_WEAK_TWIN(ncclParamGetU8);
FALCON_WEAK_TWIN(ncclParamGetU16);
FALCON_WEAK_TWIN(ncclParamGetU32);
FALCON_WEAK_TWIN(ncclParamGetU64);
FALCON_WEAK_TWIN(ncclParamGetStr);
FALCON_WEAK_TWIN(ncclParamGet);
FALCON_WEAK_TWIN(ncclParamGetParameter);
FALCON_WEAK_TWIN(ncclParamGetAllParameterKeys);
FALCON_WEAK_TWIN(ncclParamDumpAll);
