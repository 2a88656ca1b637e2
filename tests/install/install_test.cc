// What cmake --install and cpack make: where it lies, that programs are built against it and run, and that it can be
// moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/format.h"

namespace falcon {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int code = -1;
  std::string output, errors;
};

std::string contentOf(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

constexpr const char* libraries = FALCON_LIBDIR "/nccl-falcon";
constexpr const char* metricsModule = "libnccl_falcon_metrics.so";

class Install : public testing::Test {
 protected:
  Install() { fs::create_directories(folder_); }
  ~Install() override { fs::remove_all(folder_); }

  std::string in(const std::string& name) const { return folder_ + "/" + name; }

  Outcome run(const std::string& line) const {
    const std::string whole = fmt::format("({}) > {} 2> {}", line, in("out"), in("err"));
    const int status = std::system(whole.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contentOf(in("out")),
            contentOf(in("err"))};
  }
  /// Gives the prefix.
  std::string installed(const char* name = "tree") const {
    const Outcome outcome =
        run(fmt::format("{} --install {} --prefix {}", FALCON_CMAKE, FALCON_BUILD_FOLDER, in(name)));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return in(name);
  }

  /// The files below a folder, by their paths from there.
  static std::set<std::string> filesIn(const fs::path& folder) {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (!entry.is_directory()) files.insert(entry.path().lexically_relative(folder));
    return files;
  }

  /// A program that is built against `prefix` by pkg-config says what is right.
  void expectPkgConfigServes(const std::string& prefix) const {
    const std::string config = fmt::format("PKG_CONFIG_PATH={}/{}/pkgconfig pkg-config", prefix, FALCON_LIBDIR);
    const Outcome built =
        run(fmt::format("{0} -DNCCL_FALCON_NO_CUDA {1}/program.c -o {2} $({3} --cflags --libs nccl-falcon) && {3} "
                        "--modversion --variable=preload nccl-falcon",
                        FALCON_C_COMPILER, FALCON_INSTALL_SOURCES, in("by-pkg-config"), config));
    ASSERT_EQ(built.code, 0) << built.errors;
    const std::string preload = run(config + " --variable=preload nccl-falcon").output;
    EXPECT_TRUE(fs::exists(preload.substr(0, preload.find('\n')))) << preload;
    const Outcome ran = run(in("by-pkg-config"));
    EXPECT_EQ(ran.output, "sum over 1 ranks: 1, extension as in the header\n") << ran.errors;
  }

  /// The programs of `prefix`, called as from a shell.
  void expectToolsServe(const std::string& prefix) const {
    const std::string path = fmt::format("PATH={}/bin:$PATH; export PATH; ", prefix);
    EXPECT_EQ(run(path + "falcon --version").output, "falcon " FALCON_VERSION "\n");
    const std::string preload = fmt::format("{}/{}/libnccl-falcon.so", prefix, libraries);
    EXPECT_EQ(run(path + "falcon exec --print -- prog").output,
              fmt::format("env LD_PRELOAD={} NCCL_FALCON=1 prog\n", preload));
    const Outcome checked = run(path + "falcon exec --check -- " FALCON_PROGRAM);
    EXPECT_EQ(checked.code, 0) << checked.errors;
    EXPECT_THAT(checked.output, HasSubstr("Falcon stands before it"));
    // The front finds its core, and that our profiler.
    const Outcome watched = run(path + "falcon exec -- " FALCON_PROGRAM " idle");
    EXPECT_THAT(watched.output, HasSubstr("core loaded, profiler loaded")) << watched.errors;
    EXPECT_THAT(watched.errors, IsEmpty());
    // A job of two ranks of a program whose libnccl.so.2 is that which falcon run gives it.
    const Outcome job = run(path + "falcon run -n 2 -- " + in("by-pkg-config"));
    EXPECT_THAT(job.output, HasSubstr("sum over 2 ranks: 3")) << job.errors;
    EXPECT_THAT(run(path + "falcon-train --help").output, HasSubstr("--dp"));
  }

 private:
  const std::string folder_ = (fs::temp_directory_path() / fmt::format("falcon-install-{}", getpid())).string();
};

#ifdef FALCON_HAS_UCX
TEST_F(Install, ThePluginOverUcxIsForThoseWhoAskForIt) {
  const std::string plugin = fmt::format("{}/libnccl-net-falcon-ucx.so", libraries);
  EXPECT_FALSE(filesIn(installed()).contains(plugin));
  const Outcome outcome =
      run(fmt::format("{} --install {} --prefix {} --component ucx", FALCON_CMAKE, FALCON_BUILD_FOLDER, in("ucx")));
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(filesIn(in("ucx")), std::set{plugin});
}
#endif

TEST_F(Install, LiesApartFromTheVendors) {
  const auto files = filesIn(installed());
  for (const char* file : {"libnccl.so.2", "libnccl.so", "libnccl-falcon.so", "libnccl-falcon-core.so",
                           "libnccl-net-falcon-socket.so", "libnccl-profiler-falcon.so", "libnccl-tuner-falcon.so"})
    EXPECT_THAT(files, Contains(fmt::format("{}/{}", libraries, file)));
  for (const char* file :
       {"bin/falcon", "bin/falcon-train", "include/nccl-falcon/nccl.h", "include/nccl-falcon/nccl_falcon.h",
        "share/nccl-falcon/grafana/nccl-falcon.json", "share/nccl-falcon/prometheus/nccl-falcon.rules.yml",
        "share/doc/nccl-falcon/copyright", "share/doc/nccl-falcon/docs/drop-in.md"})
    EXPECT_THAT(files, Contains(file));
  // Neither the loader, a compiler, pkg-config nor CMake takes ours for the site's own.
  for (const std::string& file : files) {
    const std::string name = fs::path(file).filename();
    if (name.starts_with("lib")) {
      EXPECT_THAT(file, StartsWith(std::string(libraries) + "/"));
    } else if (name.ends_with(".h")) {
      EXPECT_THAT(file, StartsWith("include/nccl-falcon/"));
    }
    EXPECT_NE(name, "nccl.pc");
    EXPECT_NE(name, "NCCLConfig.cmake");
  }
}

TEST_F(Install, IsStrippedAndNeedsNoFolderOfTheBuild) {
  const std::string prefix = installed();
  for (const std::string& file : filesIn(prefix)) {
    const std::string path = prefix + "/" + file, name = fs::path(file).filename();
    if (!name.starts_with("lib") && !file.starts_with("bin/")) continue;
    const std::string sections = run("readelf -SW " + path).output, dynamic = run("readelf -dW " + path).output;
    EXPECT_THAT(sections, Not(HasSubstr(".debug_info"))) << file;
    EXPECT_THAT(sections, Not(HasSubstr(".symtab"))) << file;
    EXPECT_THAT(dynamic, Not(HasSubstr(FALCON_BUILD_FOLDER))) << file;
    if (name == metricsModule)  // for `falcon` alone, which has the C++ run-time as Prometheus' library does
      EXPECT_THAT(dynamic, Not(HasSubstr("RUNPATH"))) << file;
    else if (name.starts_with("lib"))
      EXPECT_THAT(dynamic, AllOf(Not(HasSubstr("libstdc++")), Not(HasSubstr("RUNPATH")))) << file;
    else
      EXPECT_THAT(dynamic, HasSubstr("runpath: [$ORIGIN/../" + std::string(libraries) + "]")) << file;
  }
  constexpr std::uintmax_t mebibyte = 1 << 20;
  const auto sizeOf = [&](const char* name) { return fs::file_size(fmt::format("{}/{}/{}", prefix, libraries, name)); };
  EXPECT_LT(sizeOf("libnccl.so.2"), 5 * mebibyte);
  EXPECT_LT(sizeOf("libnccl-falcon-core.so"), 5 * mebibyte);
  EXPECT_LT(sizeOf("libnccl-falcon.so"), 100'000u);
}

TEST_F(Install, ServesProgramsAndCanBeMoved) {
  const std::string first = installed("first");
  expectPkgConfigServes(first);
  expectToolsServe(first);
  const std::string moved = in("moved");
  fs::rename(first, moved);
  expectPkgConfigServes(moved);
  expectToolsServe(moved);
}

TEST_F(Install, IsFoundByCmake) {
  fs::rename(installed("first"), in("moved"));
  const Outcome built = run(fmt::format(
      "{0} -S {1}/by_cmake -B {2} -G '{3}' -DCMAKE_C_COMPILER={4} -DCMAKE_PREFIX_PATH={5} "
      "-DCMAKE_C_FLAGS=-DNCCL_FALCON_NO_CUDA && {0} --build {2}",
      FALCON_CMAKE, FALCON_INSTALL_SOURCES, in("by-cmake"), FALCON_GENERATOR, FALCON_C_COMPILER, in("moved")));
  ASSERT_EQ(built.code, 0) << built.output << built.errors;
  EXPECT_EQ(run(in("by-cmake/program")).output, "sum over 1 ranks: 1, extension as in the header\n");
  EXPECT_EQ(contentOf(in("by-cmake/preload.txt")), fmt::format("{}/{}/libnccl-falcon.so", in("moved"), libraries));
}

// The compute tests' module is beside the library, not beside the program, which is called by a bare name.
TEST_F(Install, FindsItsModules) {
  const std::string prefix = installed();
  if (!fs::exists(fmt::format("{}/{}/libnccl_falcon_compute.so", prefix, libraries)))
    GTEST_SKIP() << "not built here: the module of compute tests, which wants OpenBLAS";
  const Outcome outcome = run(fmt::format("PATH={}/bin:$PATH falcon doctor -n 1", prefix));
  EXPECT_THAT(outcome.output + outcome.errors, Not(HasSubstr("plain loop")));
  EXPECT_THAT(outcome.code, testing::AnyOf(0, 3)) << outcome.errors;
}

// Nobody else needs Prometheus' library: a tarball brings no packages.
TEST_F(Install, DoesWithoutPrometheusLibraryButForMetrics) {
  const std::string prefix = installed(), falcon = prefix + "/bin/falcon";
  for (const std::string& file : filesIn(prefix))
    if (file.starts_with("bin/") || (file.find(".so") != file.npos && fs::path(file).filename() != metricsModule))
      EXPECT_THAT(run("readelf -dW " + prefix + "/" + file).output, Not(HasSubstr("prometheus"))) << file;
  const Outcome with = run(falcon + " metrics");
  EXPECT_EQ(with.code, 0) << with.errors;
  // The loader takes what lies there for the library, and finds it wanting.
  fs::create_directories(in("empty"));
  std::ofstream(in("empty") + "/libprometheus-cpp-core.so.1.0").close();
  const std::string without = fmt::format("LD_LIBRARY_PATH={} {}", in("empty"), falcon);
  EXPECT_EQ(run(without + " --version").output, "falcon " FALCON_VERSION "\n");
  const Outcome refused = run(without + " metrics");
  EXPECT_EQ(refused.code, 1) << refused.errors;
  EXPECT_THAT(refused.errors, AllOf(StartsWith("falcon metrics: "), HasSubstr(metricsModule),
                                    HasSubstr("libprometheus-cpp-core.so.1.0"),
                                    HasSubstr("install the package libprometheus-cpp-pull1.0")));
}

TEST_F(Install, GoesToDestdir) {
  const Outcome outcome = run(
      fmt::format("DESTDIR={} {} --install {} --prefix /opt/falcon", in("stage"), FALCON_CMAKE, FALCON_BUILD_FOLDER));
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  for (const std::string& file : filesIn(in("stage"))) EXPECT_THAT(file, StartsWith("opt/falcon/"));
  EXPECT_THAT(contentOf(fmt::format("{}/opt/falcon/{}/pkgconfig/nccl-falcon.pc", in("stage"), FALCON_LIBDIR)),
              Not(HasSubstr(in("stage"))));
  expectPkgConfigServes(in("stage") + "/opt/falcon");
}

TEST_F(Install, ComesAsATarballAndADebianPackage) {
  const bool debian = run("command -v dpkg-shlibdeps").code == 0;
  const Outcome packed = run(fmt::format("cd {} && {} --config {}/CPackConfig.cmake -B {}", in("."), FALCON_CPACK,
                                         FALCON_BUILD_FOLDER, in("packages")));
  ASSERT_EQ(packed.code, 0) << packed.output << packed.errors;
  constexpr std::uintmax_t mebibyte = 1 << 20;
  const std::string tarball = run(fmt::format("echo {}/*.tar.gz", in("packages"))).output;
  const std::string tar = tarball.substr(0, tarball.find('\n'));
  EXPECT_LT(fs::file_size(tar), 12 * mebibyte);
  ASSERT_EQ(run(fmt::format("mkdir {0} && tar -C {0} --strip-components=1 -xzf {1}", in("unpacked"), tar)).code, 0);
  EXPECT_EQ(filesIn(in("unpacked")), filesIn(installed()));
  expectPkgConfigServes(in("unpacked"));
  expectToolsServe(in("unpacked"));

  if (!debian) GTEST_SKIP() << "not built here: a .deb, which wants dpkg-shlibdeps";
  const std::string listed = run(fmt::format("echo {}/*.deb", in("packages"))).output;
  const std::string deb = listed.substr(0, listed.find('\n'));
  EXPECT_THAT(deb, HasSubstr("/nccl-falcon_" FALCON_VERSION));
  EXPECT_LT(fs::file_size(deb), 12 * mebibyte);
  const std::string facts = run("dpkg-deb -I " + deb).output;
  EXPECT_THAT(facts, AllOf(HasSubstr("Package: nccl-falcon\n"), HasSubstr("Version: " FALCON_VERSION "\n"),
                           HasSubstr("Depends: "), HasSubstr("libc6 (>= "), HasSubstr("libstdc++6 (>= ")));
  EXPECT_THAT(facts, AllOf(Not(HasSubstr("nccl2")), Not(HasSubstr("Conflicts")), Not(HasSubstr("cublas"))));
  std::istringstream lines(run("dpkg-deb -c " + deb).output);
  int files = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, HasSubstr("root/root")) << line;
    const std::string path = line.substr(line.find("./"));
    if (path.ends_with('/')) continue;
    ++files;
    EXPECT_THAT(path, StartsWith("./usr/"));
    EXPECT_THAT(path, Not(testing::ContainsRegex("^./usr/(include/nccl[^-]|lib/libnccl|lib/[^/]*-linux-gnu/libnccl)")))
        << path;
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace falcon
