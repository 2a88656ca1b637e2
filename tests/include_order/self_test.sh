#!/bin/sh
# Shows that check.sh can fail: builds small trees, good and bad, and compares what it says.
set -u
check=$(dirname "$0")/check.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect CODE PATTERN FILE TEXT: a good tree plus one file gives this exit code and this complaint.
expect() {
  rm -rf "${folder:?}/src"
  mkdir -p "$folder/src/base/deep" "$folder/src/middle" "$folder/src/top" "$folder/src/api" "$folder/src/stray"
  printf '%s\n' '# The order is the rule.' 'set(FALCON_FOLDERS base middle top)' >"$folder/src/CMakeLists.txt"
  printf '%s\n' '#include "base/b.h"' '#include <vector>' '#include "nccl.h"' >"$folder/src/middle/good.cc"
  printf '%s\n' '#include "top/t.h"' '#include "base/deep/d.h"' >"$folder/src/api/good.cc"
  printf '%s\n' 'falcon_folder(middle base)' >"$folder/src/middle/CMakeLists.txt"
  printf '%s\n' "$4" >"$folder/src/$3"
  said=$(sh "$check" "$folder")
  code=$?
  if [ "$code" -ne "$1" ] || ! printf "%s\n" "$said" | grep -q "$2"; then
    echo "FAILED: $3 with '$4': exit code $code (wanted $1), said '$said' (wanted /$2/)"
    failed=1
  fi
}

expect 0 '' middle/fine.h '#include "middle/good.h"'
expect 1 'base may not use middle' base/bad.h '#include "middle/m.h"'
expect 1 'base may not use top' base/deep/bad.cc '  #  include "top/t.h"'
expect 1 'top may not use api' top/bad.cc '#include "api/a.h"'
expect 1 'top/bad.cc:2: top may not use api' top/bad.cc '// first line
#include "api/a.h"  // a comment'
expect 1 '"elsewhere" is not a folder' top/bad.cc '#include "elsewhere/e.h"'
expect 1 'climbs out' top/bad.cc '#include "../base/b.h"'
expect 1 'folder stray is not named' stray/bad.cc '#include "base/b.h"'
expect 1 'middle may not use top' middle/CMakeLists.txt 'falcon_folder(middle top base)'
expect 2 'no line set' CMakeLists.txt 'set(OTHER base)'
[ "$failed" -eq 0 ] && echo "check.sh finds what it should"
exit "$failed"
