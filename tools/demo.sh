# shellcheck shell=bash
# The main job before a newcomer's eyes: on the real driver where there is one, else on a simulated
# machine.

cmd_demo() {
  setup_to_build
  say "Building Berth (the first time takes some minutes) …"
  if [[ ${1-} == --serve ]]; then
    shift
    build release berth berth-serve simulator
    # "Docs" of the page leads there.
    [[ -d build/docs || ! -x .venv/bin/mkdocs ]] || build_site .venv/bin/python
    exec /usr/bin/python3 tools/living_machine.py build/release/berth "$@"
  fi
  if [[ ${1-} == --lab ]]; then
    shift
    setup_packages openssh-server openssh-client
    build release berth simulator
    demo_lab build/release/berth "$@"
    return
  fi
  build release berth simulator
  demo build/release/berth
}

# demo PROGRAM
demo() {
  local program=$1 berth=("$1") machine gpus
  scratch=$(mktemp -d)
  chmod 755 "$scratch"
  # The runs of the demo leave no receipt among those of the user.
  export XDG_STATE_HOME=$scratch/state
  trap 'demo_end' EXIT
  if "$program" pick -n 2 >/dev/null 2>&1; then
    machine="this machine's own driver"
  else
    printf '[[device]]\nmodel = "H100"\ncount = 8\n' >"$scratch/machine.toml"
    berth+=(--sim "$scratch/machine.toml")
    machine="a simulated machine with 8 GPUs: this one has no two free ones"
  fi
  gpus=$("${berth[@]}" list --json | count_gpus)
  say "" "This runs on $machine."

  step_title "The GPUs of the machine, and who has them."
  show list

  step_title "A job gets a free GPU, and sees exactly that one."
  # shellcheck disable=SC2016
  show run -- sh -c 'echo "The job sees GPU $CUDA_VISIBLE_DEVICES"'

  step_title "A job that goes on (here it sleeps) keeps its GPU, so the next one gets another."
  start_job
  say "\$ berth run -- train-a &" "train-a has GPU $job_gpus"
  # shellcheck disable=SC2016
  show run -- sh -c 'echo "train-b gets GPU $CUDA_VISIBLE_DEVICES"'

  step_title "Who asks for more than is free is told why, GPU by GPU, and what would work."
  show why -n "$gpus"

  choose_rival "$program"
  step_title "${rival_name^} wants the same GPU. The job waits in line, and is told for whom." \
    "Then train-a is killed: the kernel ends its lease, and the next in line starts."
  start_rival
  say "\$ berth run --devices $job_gpus -- train-c &    # ${rival_name}"
  head -n 2 <&"$rival_pipe"
  say "\$ kill -9 $job    # train-a"
  kill -KILL "$job"
  cat <&"$rival_pipe"

  choose_pair
  step_title "A large job waits until both GPUs are free. A short one fills the gap meanwhile."
  start_in_background "$first" --devices "$first" --time 1h
  local holder=$background
  start_in_background "" --devices "$pair" -n 2
  say "\$ berth run --devices $pair -n 2 -- large &"
  head -n 1 <&"$background_pipe"
  # shellcheck disable=SC2016
  show run --devices "$second" --time 30m -- sh -c 'echo "short has GPU $CUDA_VISIBLE_DEVICES, and ends in time"'
  kill -KILL "$background" "$holder"

  step_title "A sweep that yields uses what is idle, and ends when somebody needs it."
  start_in_background "$first" --devices "$first" --yield
  say "\$ berth run --yield -- sweep &" "sweep has GPU $first"
  # shellcheck disable=SC2016
  show run --devices "$first" -- sh -c 'echo "train-e has GPU $CUDA_VISIBLE_DEVICES"' 2>&1
  grep -m 1 'yields' <&"$background_pipe"

  step_title "Nothing is left to clean up: whoever asks next has both GPUs."
  # shellcheck disable=SC2016
  show run -n 2 -- sh -c 'echo "train-d has GPUs $CUDA_VISIBLE_DEVICES"'

  say "" "That was the main job. Now: $program --help, docs/manual.md" ""
}

step_title() {
  local bold='' plain=''
  if [[ -t 1 ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
  printf '\n%s' "$bold"
  printf '%s\n' "$@"
  printf '%s\n' "$plain"
}

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
  /usr/bin/python3 -c 'import json, sys; print(len(json.load(sys.stdin)["devices"]))'
}

# The job says through a pipe what it got.
start_job() {
  mkfifo "$scratch/job"
  # shellcheck disable=SC2016
  "${berth[@]}" run -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"; exec sleep 600' >"$scratch/job" 2>&1 &
  job=$!
  disown
  exec {job_pipe}<"$scratch/job"
  read -r job_gpus <&"$job_pipe"
}

# A second user where we may become one who can run the program, else the same one again.
choose_rival() {
  rival=(setpriv --reuid=nobody --regid=nogroup --clear-groups --reset-env)
  rival_name="the user nobody"
  if ((EUID != 0)) || ! "${rival[@]}" test -x "$1" -a -x "$scratch" 2>/dev/null; then
    rival=() rival_name="another job of yours"
  fi
}

start_rival() {
  mkfifo "$scratch/rival"
  # shellcheck disable=SC2016
  "${rival[@]}" "${berth[@]}" run --devices "$job_gpus" -- \
    sh -c 'echo "train-c of $(id -un) has GPU $CUDA_VISIBLE_DEVICES"' >"$scratch/rival" 2>&1 &
  exec {rival_pipe}<"$scratch/rival"
}

# Two GPUs that are free.
choose_pair() {
  pair=$("${berth[@]}" pick -n 2)
  first=${pair%%,*} second=${pair##*,}
}

# start_in_background GPUS OPTION…: `berth run` whose words come through a pipe; GPUS: wait until it
# has them.
start_in_background() {
  local wanted=$1
  shift
  rm -f "$scratch/background"
  mkfifo "$scratch/background"
  # shellcheck disable=SC2016
  "${berth[@]}" run "$@" -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"; exec sleep 600' >"$scratch/background" 2>&1 &
  background=$!
  disown
  started+=("$background")
  exec {background_pipe}<"$scratch/background"
  [[ -z $wanted ]] || grep -q -m 1 "^$wanted\$" <&"$background_pipe"
}

demo_end() {
  kill -KILL ${job+"$job"} ${started+"${started[@]}"} 2>/dev/null || true
  rm -rf "$scratch"
}
