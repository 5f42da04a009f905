# shellcheck shell=bash
# The main job before a newcomer's eyes: on the real driver where there is one, else on a simulated machine.

cmd_demo() {
  setup_to_build
  say "Building Berth (the first time takes some minutes) …"
  build release berth simulator
  demo build/release/berth
}

# demo PROGRAM
demo() {
  local program=$1 berth=("$1") machine gpus
  scratch=$(mktemp -d)
  trap 'demo_end' EXIT
  if "$program" list --json >"$scratch/list" 2>/dev/null && gpus=$(count_gpus) && ((gpus > 0)); then
    machine="this machine's own driver"
  else
    printf '[[device]]\nmodel = "H100"\ncount = 8\n' >"$scratch/machine.toml"
    berth+=(--sim "$scratch/machine.toml")
    machine="a simulated machine with 8 GPUs, since this one has no NVIDIA driver"
    "${berth[@]}" list --json >"$scratch/list"
    gpus=$(count_gpus)
  fi
  say "" "This runs on $machine."

  step_title "The GPUs of the machine, and who has them."
  show list

  step_title "A job gets a free GPU, and sees exactly that one."
  # shellcheck disable=SC2016
  show run -- sh -c 'echo "The job sees CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"'

  step_title "A job that goes on (here it sleeps) keeps its GPU, so the next one gets another."
  start_job
  say "\$ berth run -- train-a &" "train-a has GPU $job_gpus"
  # shellcheck disable=SC2016
  show run -- sh -c 'echo "train-b gets GPU $CUDA_VISIBLE_DEVICES"'

  step_title "Who asks for more than is free is told why, GPU by GPU, and what would work."
  show why -n "$gpus"

  step_title "kill -9 ends the holder. The kernel ends its lease: nothing to clean up, nothing stale."
  say "\$ kill -9 $job"
  kill -KILL "$job"
  wait_for_end
  # shellcheck disable=SC2016
  show run -n "$gpus" -- sh -c 'echo "train-c has all of them: $CUDA_VISIBLE_DEVICES"'

  say "" "That was the main job. The program: $program (--help); the manual: docs/manual.md." ""
}

step_title() { printf '\n\033[1m%s\033[0m\n\n' "$*"; }

# Shows a command as a person would type it, and what it says. A refusal is an answer too.
show() {
  local word typed=berth
  for word in "$@"; do
    if [[ $word == *[\ \$]* ]]; then typed+=" '$word'"; else typed+=" $word"; fi
  done
  printf '$ %s\n' "$typed"
  "${berth[@]}" "$@" || printf '(exit status %s)\n' $?
}

count_gpus() {
  /usr/bin/python3 -c 'import json, sys; print(len(json.load(sys.stdin)["devices"]))' <"$scratch/list"
}

# The job says through a pipe what it got; the pipe ends when the last of its processes has.
start_job() {
  mkfifo "$scratch/pipe"
  # shellcheck disable=SC2016
  "${berth[@]}" run -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"; exec sleep 600' >"$scratch/pipe" 2>&1 &
  job=$!
  disown
  exec {pipe}<"$scratch/pipe"
  read -r job_gpus <&"$pipe"
}

wait_for_end() { cat <&"$pipe" >/dev/null; }

demo_end() {
  [[ -z ${job-} ]] || kill -KILL "$job" 2>/dev/null || true
  rm -rf "$scratch"
}
