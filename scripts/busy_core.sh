# Sourced by scripts that try things out beside another program.

# Keeps one core busy until the script ends. In a session of its own, as other people's programs are: those of one session share one program's part of the
# processors (sched_autogroup), which beside a dozen busy threads is hardly a tenth of a core.
keep_a_core_busy() {
  setsid sh -c 'while :; do :; done' &
  trap "kill $!" EXIT
}
