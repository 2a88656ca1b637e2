# Sourced by scripts that try things out beside another program.

# Keeps one core busy until the script ends.
keep_a_core_busy() {
  sh -c 'while :; do :; done' &
  trap "kill $!" EXIT
}
