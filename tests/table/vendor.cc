// Stands for the vendor's library of one release: has just that release's functions (a version script), writes down
// every call with all its arguments, and answers so that the answer can be recognized. Moves nothing, and never looks
// behind a handle.
#include "table/vendor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
#include "table/beyond_header.h"
#pragma GCC visibility pop

extern const int vendorVersion;

namespace {

std::mutex mutex;
auto* const calls = new std::vector<VendorCall>;
auto* const handles = new std::map<int, void*>;
std::atomic<int> answer{ncclSuccess};
std::atomic<std::uintptr_t> made{0};

/// Unlike any other.
std::uintptr_t fresh() {
  return 0x7e57000000 + 0x1000 * ++made;
}

/// What a function writes for its caller. By name where Falcon goes by the answer; nothing where the caller gives.
template <class T>
T answerFor(std::string_view name) {
  if constexpr (std::is_same_v<T, const char*>) {
    return "a text of the vendor's";
  } else if constexpr (std::is_same_v<T, const char**>) {
    static const char* keys[] = {"NCCL_OF_THE_VENDOR"};
    return keys;
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(fresh());
  } else if constexpr (std::is_same_v<T, ncclResult_t>) {
    return ncclSuccess;
  } else if constexpr (std::is_same_v<T, ncclRedOp_t>) {
    return static_cast<ncclRedOp_t>(1000 + fresh() / 0x1000 % 1000);
  } else if constexpr (std::is_same_v<T, ncclUniqueId>) {
    T id{};
    std::memset(id.internal, 'v', 40);  // as the vendor: the rest is zero
    const auto mark = fresh();
    std::memcpy(id.internal, &mark, sizeof mark);
    return id;
  } else if constexpr (std::is_same_v<T, ncclSimInfo_t>) {
    T info NCCL_SIM_INFO_INITIALIZER;
    info.estimatedTime = static_cast<float>(fresh() / 0x1000 % 1000);
    return info;
  } else if constexpr (std::is_class_v<T>) {
    return T{};
  } else {
    if (name == "version") return static_cast<T>(vendorVersion);
    if (name == "count") return static_cast<T>(4);
    if (name == "rank" || name == "tableLen") return static_cast<T>(1);
    return static_cast<T>(fresh() / 0x1000 % 100);
  }
}

constexpr std::string_view given[] = {"config", "commIds", "excludeRanksList", "signalDescs"};

/// What the caller gives by its address: its content is to arrive.
template <class T>
bool isGiven(std::string_view name) {
  return std::is_const_v<T> || std::find(std::begin(given), std::end(given), name) != std::end(given);
}

template <class T>
void noteContent(VendorArgument& argument, T* value) {
  using Plain = std::remove_cv_t<T>;
  if constexpr (!std::is_void_v<T> && !std::is_function_v<T> && !std::is_same_v<Plain, char>) {
    if constexpr (requires { sizeof(T); }) {
      if (!value) return;
      if (isGiven<T>(argument.name)) {
        argument.contentSize = std::min(sizeof(T), sizeof argument.content);
        std::memcpy(argument.content, value, argument.contentSize);
      } else if constexpr (!std::is_const_v<T>) {
        const T wanted = answerFor<Plain>(argument.name);
        std::memcpy(static_cast<void*>(value), &wanted, sizeof wanted);
        static_assert(sizeof wanted <= sizeof argument.answer);
        argument.answerSize = sizeof wanted;
        std::memcpy(argument.answer, &wanted, sizeof wanted);
      }
    }
  }
}

template <class T>
void note(VendorCall& call, std::string_view name, const T& value) {
  VendorArgument& argument = call.arguments[call.count++];
  static_assert(sizeof value <= sizeof argument.bytes);
  std::memcpy(argument.name, name.data(), std::min(name.size(), sizeof argument.name - 1));
  argument.size = sizeof value;
  std::memcpy(argument.bytes, &value, sizeof value);
  if constexpr (std::is_pointer_v<T>) noteContent(argument, value);
}

template <class Result>
Result resultOf(const char* function) {
  if constexpr (std::is_same_v<Result, ncclResult_t>)
    return static_cast<ncclResult_t>(answer.load());
  else if constexpr (std::is_same_v<Result, const char*>)
    return function;
  else if constexpr (std::is_same_v<Result, ncclTeam_t>)
    return {static_cast<int>(fresh() / 0x1000), 1, 2};
  else
    return static_cast<Result>(fresh() / 0x1000);
}

/// The other handles of an InitAll, whose array is longer than its declaration says.
void fillOthers(const VendorCall& call) {
  ncclComm_t* comms = nullptr;
  int count = 0;
  std::memcpy(&comms, call.arguments[0].bytes, sizeof comms);
  std::memcpy(&count, call.arguments[1].bytes, sizeof count);
  for (int i = 0; comms && i < count && i < 8; ++i) {
    if (i > 0) comms[i] = answerFor<ncclComm_t>("comm");
    (*handles)[i] = comms[i];
  }
}

/// The next of a list of names as the preprocessor writes it.
std::string_view nextName(std::string_view& names) {
  const std::size_t end = std::min(names.find(','), names.size());
  const std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(end + 2, names.size()));
  return name;
}

void keepHandles(const VendorCall& call) {
  const void* handle = nullptr;
  int rank = 0;
  for (const VendorArgument& each : call.arguments) {
    const std::string_view name = each.name;
    if (each.answerSize == sizeof handle && (name == "comm" || name == "newcomm"))
      std::memcpy(&handle, each.answer, sizeof handle);
    if (name == "rank" || name == "myrank") std::memcpy(&rank, each.bytes, sizeof rank);
  }
  if (handle) (*handles)[rank] = const_cast<void*>(handle);
}

template <class Result, class... Arguments>
Result called(const char* function, [[maybe_unused]] std::string_view names, Arguments... arguments) {
  const std::lock_guard lock(mutex);
  VendorCall call{};
  std::strncpy(call.function, function, sizeof call.function - 1);
  (note(call, nextName(names), arguments), ...);
  keepHandles(call);
  if (std::string_view(function) == "ncclCommInitAll") fillOthers(call);
  if constexpr (std::is_void_v<Result>) {
    calls->push_back(call);
  } else {
    const Result result = resultOf<Result>(function);
    call.resultSize = sizeof result;
    std::memcpy(call.result, &result, sizeof result);
    calls->push_back(call);
    return result;
  }
}

}  // namespace

#define VENDOR extern "C" __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define FUNCTION(Result, name, parameters, ...)                            \
  VENDOR Result p##name parameters {                                       \
    return called<Result>(#name, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                        \
  VENDOR __attribute__((weak, alias("p" #name))) Result name parameters;
#include "functions.inc"
#undef FUNCTION

namespace {

template <class Result, class... Arguments>
void callWithZeros(Result (*function)(Arguments...)) {
  (void)function(Arguments{}...);
  asm volatile("");  // a call, no jump: it leaves its address
}
struct Callable {
  std::string_view name;
  void (*call)();
};
/// By the exported name, which is whoever's that stands first.
const Callable callables[] = {
#define FUNCTION(Result, name, ...) {#name, [] { callWithZeros(name); }},
#include "functions.inc"
#undef FUNCTION
};

}  // namespace

VENDOR int vendorCallItself(const char* function) {
  for (const Callable& each : callables) {
    if (each.name != function) continue;
    each.call();
    return 1;
  }
  return 0;
}

VENDOR int vendorTakeCalls(VendorCall* taken, int most) {
  const std::lock_guard lock(mutex);
  const int count = static_cast<int>(calls->size());
  std::copy_n(calls->begin(), std::min(count, most), taken);
  calls->clear();
  return count;
}

VENDOR void vendorAnswer(int result) {
  answer = result;
}

VENDOR void* vendorHandleOfRank(int rank) {
  const std::lock_guard lock(mutex);
  return (*handles)[rank];
}
