// Calls every function of NCCL once, as the loader gives it to a program that is linked to libnccl.so.2, and says of
// each what the vendor's stand-in saw of it.
//   program VENDOR own|vendors plausible|wild
//   program VENDOR own|vendors itself FUNCTION...   the vendor's own code calls these by their exported names
// VENDOR: the stand-in's file. own: a communicator's handle is the library's own, and the vendor has one of its own.
// A line for each function: its name, and "same" (the vendor got the same arguments, the caller the same answers), "not
// there" (nobody has it), "refused" (ncclInvalidUsage, and nobody was asked), or what is otherwise.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "table/values.h"
#include "table/vendor.h"

namespace falcon::table {
namespace {

/// The function that a program would get.
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}
#define FIND(name) falcon::table::find<decltype(::name)>(#name)

[[noreturn]] void stop(const std::string& why) {
  std::printf("stopped: %s\n", why.c_str());
  std::fflush(stdout);
  _exit(1);
}

class Vendor {
 public:
  explicit Vendor(const char* path) {
    library_ = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (!library_) stop(std::string(path) + " is not in the process");
  }
  std::vector<VendorCall> take() const {
    std::vector<VendorCall> calls(64);
    const int count = function<decltype(vendorTakeCalls)>("vendorTakeCalls")(calls.data(), 64);
    calls.resize(static_cast<std::size_t>(count < 64 ? count : 64));
    return calls;
  }
  bool callItself(const char* name) const {
    return function<decltype(vendorCallItself)>("vendorCallItself")(name) != 0;
  }
  void answer(ncclResult_t result) const { function<decltype(vendorAnswer)>("vendorAnswer")(result); }
  ncclComm_t handleOfRank(int rank) const {
    return static_cast<ncclComm_t>(function<decltype(vendorHandleOfRank)>("vendorHandleOfRank")(rank));
  }

 private:
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_;
};

/// What belongs together: as the caller knows it, and as the vendor does.
struct Handle {
  ncclComm_t callers = nullptr, vendors = nullptr;
};

/// A name of a list as the preprocessor writes it.
std::vector<std::string> namesIn(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return names;
}

bool has(const std::vector<std::string>& names, std::initializer_list<std::string_view> some) {
  for (const std::string& each : names)
    for (const std::string_view wanted : some)
      if (each == wanted) return true;
  return false;
}

/// The word of 8 bytes in which two pieces of memory begin to differ, by its place; `size`: nowhere.
std::size_t firstDifference(const void* left, const void* right, std::size_t size) {
  const auto* const l = static_cast<const unsigned char*>(left);
  const auto* const r = static_cast<const unsigned char*>(right);
  std::size_t at = 0;
  while (at < size && l[at] == r[at]) ++at;
  return at < size ? at / 8 * 8 : size;
}

class Table {
 public:
  Table(const char* vendor, bool ownHandles, bool wild) : vendor_(vendor), ownHandles_(ownHandles), wild_(wild) {}

  template <class Result, class... Arguments>
  void check(const char* name, const char* list, Result (*)(Arguments...)) {
    ++place_;
    const auto function = find<Result(Arguments...)>(name);
    if (!function) return say(name, "not there");
    const std::vector<std::string> names = namesIn(list);
    std::string verdict = once<Result, Arguments...>(name, function, names, ncclSuccess);
    if constexpr (std::is_same_v<Result, ncclResult_t>) {
      // The vendor's own answer comes back, whatever it is.
      vendor_.take();
      if (verdict.starts_with("same")) {
        const std::string failing = once<Result, Arguments...>(name, function, names, ncclUnhandledCudaError);
        if (!failing.starts_with("same")) verdict = "when it fails: " + failing;
      }
    }
    say(name, verdict);
  }

 private:
  static void say(const char* name, const std::string& verdict) { std::printf("%s %s\n", name, verdict.c_str()); }

  /// Communicator of so many ranks, all of this process; that of the middle rank, or of the only one.
  Handle communicatorOf(int size, int rank) {
    std::vector<ncclComm_t> all(static_cast<std::size_t>(size));
    const auto initAll = FIND(ncclCommInitAll);
    if (const ncclResult_t made = initAll(all.data(), size, nullptr); made != ncclSuccess)
      stop("ncclCommInitAll: " + std::to_string(made) + " " + FIND(ncclGetLastError)(nullptr));
    const ncclComm_t handle = all[static_cast<std::size_t>(rank)];
    return {handle, ownHandles_ ? vendor_.handleOfRank(rank) : handle};
  }

  const Handle& communicatorFor(const std::string& function, const std::vector<std::string>& names) {
    const bool ends = function.starts_with("ncclComm") &&
                      (function.ends_with("Destroy") || function.ends_with("Abort") || function.ends_with("Finalize") ||
                       function.ends_with("Revoke") || function.ends_with("Suspend") || function.ends_with("Resume"));
    const bool manyRanks = has(names, {"root", "peer"}), leavesOne = has(names, {"excludeRanksList"});
    Handle& kept = manyRanks ? ofFour_ : leavesOne ? ofTwo_ : ofOne_;
    if (!kept.callers || leavesOne || ends)
      kept = manyRanks ? communicatorOf(4, 1) : leavesOne ? communicatorOf(2, 0) : communicatorOf(1, 0);
    if (!ends) return kept;
    ending_ = kept;
    kept = {};
    return ending_;
  }

  /// What the caller uses, and what the vendor is to get for it.
  std::pair<Making, Making> prepare(const std::string& function, const std::vector<std::string>& names) {
    Making caller;
    caller.wild = wild_;
    caller.call = place_;
    if (wild_)
      std::memset(&caller.id, 'w', sizeof caller.id);
    else if (has(names, {"commId", "commIds"}) || function == "ncclCommGrow")
      FIND(ncclGetUniqueId)(&caller.id);
    const Handle communicator = communicatorFor(function, names);
    caller.communicator = communicator.callers;
    caller.window = reinterpret_cast<ncclWindow_t>(arena.pages[14]);
    caller.registration = arena.pages[15];
    Making vendors = caller;
    vendors.communicator = communicator.vendors;
    const auto registerWindow = FIND(ncclCommWindowRegister);
    if (registerWindow && has(names, {"win", "peerWin", "window"}) && !names.empty() &&
        !function.ends_with("Register")) {
      registerWindow(caller.communicator, arena.pages[14], 100, &caller.window, 1);
      vendors.window = caller.window;
    }
    const auto registerBuffer = FIND(ncclCommRegister);
    if (registerBuffer && function == "ncclCommDeregister") {
      registerBuffer(caller.communicator, arena.pages[14], 100, &caller.registration);
      vendors.registration = caller.registration;
    }
    if (function == "ncclRedOpDestroy" && !wild_) {
      vendor_.take();
      FIND(ncclRedOpCreatePreMulSum)
      (&caller.operation, arena.pages[14], ncclBfloat16, ncclScalarDevice, caller.communicator);
      const auto seen = vendor_.take();
      if (seen.size() != 1) stop("ncclRedOpCreatePreMulSum did not reach the vendor");
      std::memcpy(&vendors.operation, seen[0].arguments[0].answer, sizeof vendors.operation);
    }
    return {caller, vendors};
  }

  template <class T>
  static T next(Making& making, const std::vector<std::string>& names) {
    ++making.argument;
    return makeArgument<T>(making, names[static_cast<std::size_t>(making.argument)]);
  }

  void before(std::string_view function) {
    if (function == "ncclGroupEnd" || function == "ncclGroupSimulateEnd") FIND(ncclGroupStart)();
  }
  void after(std::string_view function) {
    if (function == "ncclGroupStart") FIND(ncclGroupEnd)();
  }

  template <class Result, class... Arguments>
  std::string once(const char* name, Result (*function)(Arguments...), const std::vector<std::string>& names,
                   ncclResult_t answer) {
    auto [caller, vendors] = prepare(name, names);
    const auto make = [&]([[maybe_unused]] Making making) {
      making.argument = -1;
      return std::tuple<Arguments...>{next<Arguments>(making, names)...};
    };
    const std::tuple<Arguments...> expected = make(vendors);
    const std::tuple<Arguments...> given = make(caller);
    before(name);
    vendor_.take();
    vendor_.answer(answer);
    std::string verdict;
    if constexpr (std::is_void_v<Result>) {
      std::apply(function, given);
      vendor_.answer(ncclSuccess);
      verdict = judge(name, expected, given, nullptr, 0);
    } else {
      const Result result = std::apply(function, given);
      vendor_.answer(ncclSuccess);
      verdict = judge(name, expected, given, &result, sizeof result);
    }
    after(name);
    return verdict;
  }

  template <class... Arguments>
  std::string judge(const std::string& name, const std::tuple<Arguments...>& expected,
                    const std::tuple<Arguments...>& given, const void* result, std::size_t resultSize) {
    std::vector<std::string> others;
    std::vector<VendorCall> own;
    for (const VendorCall& call : vendor_.take())
      if (call.function == name)
        own.push_back(call);
      else if (std::find(others.begin(), others.end(), call.function) == others.end())
        others.emplace_back(call.function);
    std::string besides;
    for (const std::string& other : others) besides += (besides.empty() ? "" : ", ") + other;
    int code = -1;
    if (result && resultSize == sizeof code) std::memcpy(&code, result, sizeof code);
    if (own.empty() && code == ncclInvalidUsage && others.empty()) return "refused";
    if (own.empty()) return others.empty() ? "answered by ourselves" : "becomes " + besides;
    if (own.size() > 1) return "asked more than once";

    std::string verdict;
    const auto note = [&verdict](const std::string& what) { verdict += (verdict.empty() ? "" : "; ") + what; };
    std::size_t index = 0;
    const auto each = [&](const auto& wanted, const auto& callers) {
      const VendorArgument& seen = own[0].arguments[index++];
      compare(seen, &wanted, sizeof wanted, note);
      if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(callers)>>) {
        if (seen.answerSize > 0 && seen.answerSize != firstDifference(seen.answer, callers, seen.answerSize))
          note(std::string(seen.name) + " is given back otherwise from byte " +
               std::to_string(firstDifference(seen.answer, callers, seen.answerSize)) + " on");
      }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (each(std::get<I>(expected), std::get<I>(given)), ...);
    }
    (std::index_sequence_for<Arguments...>());
    if (result && firstDifference(own[0].result, result, resultSize) != resultSize)
      note("the result is given back otherwise");
    if (verdict.empty()) verdict = "same";
    return verdict + (besides.empty() ? "" : ", and asks " + besides);
  }

  template <class Note>
  static void compare(const VendorArgument& seen, const void* wanted, std::size_t size, Note& note) {
    if (seen.size == size && firstDifference(seen.bytes, wanted, size) == size) return;
    const void* content = nullptr;
    if (seen.contentSize > 0 && size == sizeof content) {
      std::memcpy(&content, wanted, sizeof content);
      const std::size_t at = firstDifference(seen.content, content, seen.contentSize);
      if (at == seen.contentSize) return;  // a copy will do
      return note(std::string(seen.name) + " arrives as a copy that differs from byte " + std::to_string(at) + " on");
    }
    note(std::string(seen.name) + " arrives otherwise from byte " +
         std::to_string(firstDifference(seen.bytes, wanted, size)) + " on");
  }

  const Vendor vendor_;
  const bool ownHandles_, wild_;
  int place_ = 0;
  Handle ofOne_, ofTwo_, ofFour_, ending_;
};

}  // namespace

/// A line for each: "same" where the vendor got its own call as it was, and nothing else.
int runItself(const char* path, std::span<char* const> functions) {
  const Vendor vendor(path);
  for (const char* const name : functions) {
    vendor.take();
    if (!vendor.callItself(name)) stop(std::string("the vendor has no ") + name);
    const auto calls = vendor.take();
    const bool same = calls.size() == 1 && std::string_view(calls[0].function) == name &&
                      std::all_of(calls[0].arguments, calls[0].arguments + calls[0].count, [](const auto& argument) {
                        return std::all_of(argument.bytes, argument.bytes + argument.size,
                                           [](unsigned char byte) { return byte == 0; });
                      });
    std::string others;
    for (const VendorCall& call : calls) others += std::string(" ") + call.function;
    std::printf("%s %s\n", name, same ? "same" : ("became" + others).c_str());
  }
  std::fflush(stdout);
  _exit(0);
}

int run(const char* vendor, bool ownHandles, bool wild) {
  Table table(vendor, ownHandles, wild);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define FUNCTION(Result, name, parameters, ...) \
  table.check(#name, #__VA_ARGS__, static_cast<decltype(&::name)>(nullptr));
#include "functions.inc"
#undef FUNCTION
  std::fflush(stdout);
  _exit(0);  // threads of Falcon's may still be waiting for ranks that do not come
}

}  // namespace falcon::table

int main(int count, char** words) {
  if (count < 4) return 2;
  // Whoever is to be the vendor is loaded by the first call.
  int version = 0;
  FIND(ncclGetVersion)(&version);
  if (std::string_view(words[3]) == "itself")
    return falcon::table::runItself(words[1], std::span(words + 4, static_cast<std::size_t>(count - 4)));
  return falcon::table::run(words[1], std::string_view(words[2]) == "own", std::string_view(words[3]) == "wild");
}
