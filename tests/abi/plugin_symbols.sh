#!/usr/bin/env bash
# plugin_symbols.sh LIBRARY KIND: a plugin of ours exports versions 4 to 7 of its interface, the profiler what Falcon's library asks it for, and nothing else, needs no library but glibc's, and nothing newer than
# glibc 2.34.
set -euo pipefail
library=$1 kind=$2
case "$kind" in
  profiler) prefix=ncclProfiler_v others="ncclFalconServeWatched " ;;
  tuner) prefix=ncclTunerPlugin_v others= ;;
  *) echo "$kind: profiler or tuner is wanted" >&2; exit 2 ;;
esac
wrong=0
exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sort | tr '\n' ' ')
[ "$exported" = "${others}${prefix}4 ${prefix}5 ${prefix}6 ${prefix}7 " ] || { echo "it exports $exported"; wrong=1; }
for needed in $(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }'); do
  case "$needed" in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-x86-64.so.2) ;;
    *) echo "it needs $needed"; wrong=1 ;;
  esac
done
newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
[ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.34 ] || { echo "it needs $newest"; wrong=1; }
exit $wrong
