# shellcheck shell=bash
# What reads foreign text, fed by libFuzzer. What it learns stays in build/fuzz-corpus; the tree has
# a small corpus, which the unit tests feed to the same targets in every build.

fuzz_targets=(http hosts usage ticket snapshot expression site-file agents-file job script workload nvidia-smi nvml)

# fuzz_target SECONDS TARGET: a line with what came of it.
fuzz_target() {
  local seconds=$1 target=$2 log=build/log/fuzz-$2.log status=0 count
  mkdir -p "build/fuzz-corpus/$target" build/fuzz-found
  BERTH_FUZZ_TARGET=$target build/fuzz/berth_fuzz -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
    -print_final_stats=1 -verbosity=1 -artifact_prefix="build/fuzz-found/$target-" \
    "build/fuzz-corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || status=$?
  count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((status == 0)); then
    printf '  %-12s %12s inputs, nothing found\n' "$target" "$count"
    return 0
  fi
  printf '  %-12s FAILED (%s)\n' "$target" "$log"
  grep -m 3 -E 'ERROR|runtime error|does not hold|Test unit written' "$log" | sed 's/^/    | /'
  return 1
}

cmd_fuzz() {
  local minutes=1 targets=() failed=0 target
  while (($#)); do
    case $1 in
      --minutes)
        minutes=${2:?how many minutes?}
        shift
        ;;
      *) targets+=("$1") ;;
    esac
    shift
  done
  ((${#targets[@]})) || targets=("${fuzz_targets[@]}")
  for target in "${targets[@]}"; do
    [[ -d tests/fuzz/corpus/$target ]] || die "no target $target; there are: ${fuzz_targets[*]}"
  done
  setup_to_test
  build fuzz berth_fuzz
  say "each of ${#targets[@]} targets for $((minutes * 60 * $(nproc) / ${#targets[@]})) s"
  export -f fuzz_target
  printf '%s\n' "${targets[@]}" |
    xargs -P "$(nproc)" -I{} bash -c 'fuzz_target "$@"' _ $((minutes * 60 * $(nproc) / ${#targets[@]})) {} || failed=1
  ((failed == 0)) || die "what was found is in build/fuzz-found; a crash: BERTH_FUZZ_TARGET=NAME build/fuzz/berth_fuzz FILE"
}
