# shellcheck shell=sh
# Holds a GPU by the lock that all programs of a machine share: docs/standard.md, version 1.
# Needs flock(1) of util-linux, and awk. Descriptor 9 is the lock.

berth_directory() {
  if [ -n "${BERTH_DIR-}" ]; then
    printf '%s\n' "$BERTH_DIR"
  elif [ -d /run/berth ]; then
    echo /run/berth
  else
    echo /tmp/berth
  fi
}

# berth_alive PATH: whether a process has this ticket, or one in this folder. The kernel knows. What
# others than its owner may write is nobody's ticket. While others unlock, the kernel may leave out
# a lock in one reading.
berth_alive() {
  # shellcheck disable=SC2012 # no name is read
  berth_inodes=$(LC_ALL=C ls -1inAq -- "$1" 2>/dev/null | awk '$2 ~ /^-....-..-/ { print $1 }')
  [ -n "$berth_inodes" ] || return 1
  printf '%s\n' "$berth_inodes" | awk '
    NR == FNR { ticket[$1]; next }
    $2 == "OFDLCK" && $4 == "WRITE" { sub(/.*:/, "", $6); if ($6 in ticket) { found = 1; exit } }
    END { exit !found }' - /proc/locks /proc/locks /proc/locks /proc/locks /proc/locks 2>/dev/null
}

# berth_has_by_lease UUID: whether this shell runs inside a lease that has the GPU.
berth_has_by_lease() {
  berth_folder=$(berth_directory)
  berth_rest=${BERTH_LEASE-}/
  while [ -n "$berth_rest" ]; do
    berth_ticket=$berth_folder/leases/${berth_rest%%/*}
    berth_folder=$berth_folder/inside/${berth_rest%%/*}
    berth_rest=${berth_rest#*/}
    [ -f "$berth_ticket" ] || return 1
    berth_alive "$berth_ticket" || return 1
  done
  grep -qxF "device=$1" -- "$berth_ticket" 2>/dev/null
}

# berth_try_hold UUID [share]: 0: held, until the last process that has descriptor 9 ends. 1:
# somebody has the GPU, or waits for one. 2: there is no lock file.
berth_try_hold() {
  berth_lock=$(berth_directory)/devices/$(printf %s "$1" | LC_ALL=C tr -c 'A-Za-z0-9-' _)
  berth_how=-x
  [ "${2-}" = share ] && berth_how=-s
  if [ ! -d "$(berth_directory)/queue" ] || [ ! -f "$berth_lock" ] || [ -L "$berth_lock" ]; then
    echo "$berth_lock: no such file; an administrator can make it: sudo berth init" >&2
    return 2
  fi
  berth_alive "$(berth_directory)/queue" && return 1
  # First without the right to make the file. Then for writing: so the end of the lock wakes those
  # who wait.
  if ! { command exec 9<"$berth_lock" && command exec 9<>/proc/self/fd/9; } 2>/dev/null; then
    echo "$berth_lock cannot be opened; an administrator can repair it: sudo berth init" >&2
    return 2
  fi
  if flock -n $berth_how 9 &&
    [ "$(stat -c %F:%d:%i -- "$berth_lock" 2>/dev/null)" = "$(stat -L -c %F:%d:%i /proc/self/fd/9)" ]; then
    return 0
  fi
  exec 9>&-
  return 1
}
