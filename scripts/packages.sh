# Sourced by the scripts: installs Debian packages that are missing, as root, without asking.
# Groups: build (compile and run), test (what only tests need), lint, clang (sanitizers and fuzzing), browser, bench (FALCON_BENCHMARKS), peers (what only scripts/bench needs), training and net (for its --training and --net),
# python (the Python package, where python3 is Debian's).

falcon_packages() {
  case "$1" in
    build) echo g++ cmake ninja-build ccache libfmt-dev libboost-dev libxxhash-dev libcli11-dev nlohmann-json3-dev libopenblas-serial-dev prometheus-cpp-dev iproute2 liburing-dev libucx-dev libibverbs-dev ;;
    test) echo libgtest-dev libgmock-dev clang lld binutils procps iproute2 spin curl prometheus python3 pkgconf dpkg-dev file iperf3 ;;
    lint) echo clang-format clang-tidy ;;
    clang) echo clang libclang-rt-dev lld ;;
    browser) echo chromium ;;
    bench) echo libbenchmark-dev ;;
    python) echo python3-venv python3-dev ;;
    training) echo python3 ;;
    net) echo iperf3 ucx-utils python3 ;;
    peers) echo openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev python3 ;;
    *) echo "packages.sh: no group named $1" >&2; return 2 ;;
  esac
}

# need_packages GROUP...: quiet when all are there.
need_packages() {
  local missing=() package group
  for group in "$@"; do
    for package in $(falcon_packages "$group"); do
      dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "These packages are missing and need root to install: ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "apt-get could not install: ${missing[*]}" >&2
    return 1
  fi
  rm -f "$log"
}
