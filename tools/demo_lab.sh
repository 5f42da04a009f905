# shellcheck shell=bash
# A lab on this one machine: three hosts, each an sshd on a port of loopback, with simulated GPUs
# and a lease directory of its own. What docs/machines.md tells people to type works in it as
# written.

# demo_lab PROGRAM [COMMAND…]: shows the main job on three hosts; with a COMMAND it runs that in the
# lab instead.
demo_lab() {
  local program
  program=$(readlink -f "$1")
  shift
  # shellcheck disable=SC2034 # for `show`, of demo.sh
  berth=(berth)
  command -v ssh-keygen >/dev/null || die "the demo of a lab needs ssh (openssh-client)"
  lab_sshd=$(PATH=/usr/sbin:/usr/local/sbin:$PATH command -v sshd) ||
    die "the demo of a lab needs sshd (openssh-server)"
  # sshd wants it to be there, for what root has.
  ((EUID != 0)) || mkdir -p /run/sshd
  scratch=$(mktemp -d)
  chmod 755 "$scratch"
  trap 'lab_end' EXIT
  lab_desk "$program"
  lab_host gpu1 "$program" H100 2
  lab_host gpu2 "$program" A100 2
  lab_host gpu3 "$program" L40S 1
  cd "$scratch/work" || die "the folder $scratch/work is gone"
  if (($#)); then
    "$@"
    return
  fi
  lab_tour
  [[ -t 0 && -t 1 ]] || return 0
  say "" "Two jobs of this demo still have all GPUs of gpu1 and gpu2, for ten minutes at most."
  say "" "The lab is yours until you type exit. Try: berth list --anywhere" ""
  PS1='lab$ ' bash --norc || true
}

# The place of the user: a home, a folder that all hosts have, and an ssh that knows the hosts.
lab_desk() {
  mkdir "$scratch/bin" "$scratch/work"
  mkdir -p "$scratch/home/.config"
  ssh-keygen -q -t ed25519 -N '' -f "$scratch/user_key"
  ssh-keygen -q -t ed25519 -N '' -f "$scratch/host_key"
  ln -s "$1" "$scratch/bin/berth"
  ln -s /usr/bin/python3 "$scratch/bin/python"
  # ssh finds its configuration by the account and not by HOME.
  printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$scratch/ssh_config" >"$scratch/bin/ssh"
  chmod 755 "$scratch/bin/ssh"
  cat >"$scratch/ssh_config" <<CONFIG
Host *
  HostName 127.0.0.1
  User $(id -un)
  IdentityFile $scratch/user_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile $scratch/known_hosts
  GlobalKnownHostsFile /dev/null
  LogLevel ERROR
CONFIG
  printf 'hosts = ["gpu1", "gpu2", "gpu3"]\n' >"$scratch/home/.config/berth.toml"
  cat >"$scratch/work/train.py" <<'PYTHON'
import os

print("training on GPU", os.environ["CUDA_VISIBLE_DEVICES"], "of", os.environ["LAB_HOST"])
PYTHON
  unset BERTH_SSH BERTH_SITE_FILE XDG_CONFIG_HOME XDG_STATE_HOME
  export HOME=$scratch/home PATH=$scratch/bin:$PATH
}

# lab_host NAME PROGRAM MODEL COUNT
lab_host() {
  local folder=$scratch/$1 port
  mkdir -p "$folder/bin" "$folder/home"
  printf '[[device]]\nmodel = "%s"\ncount = %s\n' "$3" "$4" >"$folder/machine.toml"
  printf '#!/bin/sh\nexec %s --sim %s "$@"\n' "$2" "$folder/machine.toml" >"$folder/bin/berth"
  chmod 755 "$folder/bin/berth"
  port=$(/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  cat >"$folder/sshd_config" <<CONFIG
ListenAddress 127.0.0.1:$port
HostKey $scratch/host_key
AuthorizedKeysFile $scratch/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
UseDNS no
PrintMotd no
SetEnv LAB_HOST=$1 HOME=$folder/home PATH=$folder/bin:/usr/local/bin:/usr/bin:/bin
CONFIG
  printf 'Host %s\n  Port %s\n' "$1" "$port" | cat - "$scratch/ssh_config" >"$scratch/ssh_config.new"
  mv "$scratch/ssh_config.new" "$scratch/ssh_config"
  printf '[127.0.0.1]:%s %s\n' "$port" "$(cut -d' ' -f1,2 "$scratch/host_key.pub")" >>"$scratch/known_hosts"
  setsid "$lab_sshd" -D -e -f "$folder/sshd_config" </dev/null 2>"$folder/sshd.log" &
  started+=($!)
  disown
  until ssh "$1" true 2>/dev/null; do
    kill -0 "${started[-1]}" 2>/dev/null || die "sshd has ended: $(tail -n 1 "$folder/sshd.log")"
    sleep 0.05
  done
}

lab_tour() {
  say "" "Three hosts on this one machine: an sshd and simulated GPUs each."

  step_title "ssh reaches each host and asks nothing. Berth is there."
  say "\$ ssh gpu1 berth version"
  ssh gpu1 berth version

  step_title "The names of the hosts are in your site file. Now one command shows the lab."
  say "\$ cat ~/.config/berth.toml"
  cat ~/.config/berth.toml
  show list --anywhere

  step_title "A command starts on the first host that has the GPUs."
  show run --anywhere -- python train.py
  show run --anywhere -n 2 --name A100 -- python train.py

  step_title "Now somebody has every GPU. A command waits in the queues of several hosts at once."
  lab_fill
  show list --anywhere
  rm -f "$scratch/waiting"
  mkfifo "$scratch/waiting"
  berth run --anywhere -- python train.py >"$scratch/waiting" 2>&1 &
  started+=($!)
  disown
  exec {waiting_pipe}<"$scratch/waiting"
  say "\$ berth run --anywhere -- python train.py &"
  local line waits=0
  # Three hosts tell how it stands there.
  while ((waits < 3)) && read -r line <&"$waiting_pipe"; do
    say "$line"
    [[ $line != *"first in line"* ]] || waits=$((waits + 1))
  done
  show queue --anywhere
  show why --anywhere

  step_title "The job on gpu3 ends. The command starts there, and leaves the other queues."
  say "\$ kill -9 $last_holder    # the job on gpu3"
  kill -KILL "$last_holder"
  cat <&"$waiting_pipe"
  show queue --anywhere

  say "" "That was the main job. Now: docs/machines.md" ""
}

# Somebody has all GPUs of all hosts.
lab_fill() {
  lab_hold gpu1 2
  lab_hold gpu2 2
  lab_hold gpu3 1
}

# lab_hold HOST COUNT
lab_hold() {
  local pipe
  rm -f "$scratch/holder"
  mkfifo "$scratch/holder"
  berth run --anywhere --host "$1" -n "$2" -- sh -c 'echo ready; exec sleep 600' >"$scratch/holder" 2>&1 &
  last_holder=$!
  started+=("$last_holder")
  disown
  exec {pipe}<"$scratch/holder"
  grep -q -m 1 '^ready$' <&"$pipe"
  exec {pipe}<&-
}

# Whatever runs on the hosts, and what was left in the background, has the folder in its
# environment; who looks must not.
lab_processes() {
  # grep fails where nothing is left, and where a process ends while it is read.
  env -i grep -lsaF "$scratch/" /proc/[0-9]*/environ | env -i grep -o '[0-9]*' || true
}

lab_end() {
  local processes
  kill -KILL ${started+"${started[@]}"} 2>/dev/null || true
  while processes=$(lab_processes) && [[ -n $processes ]]; do
    # shellcheck disable=SC2086 # a number each
    kill -KILL $processes 2>/dev/null || true
    sleep 0.05
  done
  cd /
  rm -rf "$scratch"
}
