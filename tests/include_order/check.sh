#!/bin/sh
# check.sh ROOT: the #include lines of ROOT/src obey the order of folders in ROOT/src/CMakeLists.txt, and so do the
# libraries that each folder links. A folder may use itself and the folders named before it; api comes last.
set -u
root=${1:?usage: check.sh ROOT}
# A carriage of names: " base topology ... api ", so that a folder's place is the length of what stands before it.
order=$(sed -n 's/^set(FALCON_FOLDERS \(.*\))$/\1/p' "$root/src/CMakeLists.txt")
[ -n "$order" ] || { echo "no line set(FALCON_FOLDERS ...) in $root/src/CMakeLists.txt"; exit 2; }
[ -d "$root/src" ] || exit 2

{
  find "$root/src" -mindepth 2 -type f \( -name '*.h' -o -name '*.cc' \) -exec grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' {} +
  find "$root/src" -mindepth 2 -maxdepth 2 -name CMakeLists.txt -exec grep -Hn '^falcon_folder(' {} +
} | awk -v root="$root/src/" -v order="$order api" '
  BEGIN { count = split(order, names, " "); for (i = 1; i <= count; ++i) place[names[i]] = i }
  function complain(text) { print file ":" line ": " text; bad = 1 }
  function use(used) {
    if (!(used in place)) complain("\"" used "\" is not a folder of src/CMakeLists.txt")
    else if (place[used] > place[folder]) complain(folder " may not use " used ", which comes after it")
  }
  {
    match($0, /:[0-9]+:/)
    file = substr($0, 1, RSTART - 1); line = substr($0, RSTART + 1, RLENGTH - 2); text = substr($0, RSTART + RLENGTH)
    folder = substr(file, length(root) + 1); sub(/\/.*/, "", folder)
    ++lines
    if (!(folder in place)) { complain("folder " folder " is not named in src/CMakeLists.txt"); next }
    if (text ~ /^falcon_folder\(/) {
      gsub(/^falcon_folder\(|\).*$/, "", text)
      parts = split(text, words, " ")
      for (i = 2; i <= parts; ++i) use(words[i])
      next
    }
    sub(/^[^"]*"/, "", text); sub(/".*/, "", text)
    if (text ~ /\.\./) { complain("\"" text "\" climbs out of its folder: name it from src"); next }
    if (text !~ /\//) next  # a public header of include/
    sub(/\/.*/, "", text)
    use(text)
  }
  END {
    if (lines == 0) { print "nothing to check: no #include line found under " root; bad = 1 }
    exit bad
  }'
