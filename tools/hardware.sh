# shellcheck shell=bash disable=SC2154 # what cross.sh sets
# What a machine with a GPU needs to check what docs/hardware.md assumes: a folder that is copied
# there and run.

# packed_program [BUILD]: the program to pack, and a line that says which it is. The wheel's runs on
# the oldest systems.
packed_program() {
  local build=${1-} cross
  cross=build/cross/$(uname -m)/installed/bin/berth
  if [[ -n $build ]]; then
    [[ -x $build/berth ]] || die "no program $build/berth: build it, or leave out --build"
    printf '%s\nthe program of %s' "$build/berth" "$build"
  elif [[ -x $cross ]]; then
    printf "%s\nthe wheel's program, which runs with glibc %s or newer" "$cross" "${cross_glibc[$(uname -m)]}"
  else
    # It is called in a condition, where bash goes on after a command that fails.
    setup_to_build >&2 && build release berth || return
    printf '%s\nthe release build: it needs glibc 2.34, and ./dev package makes one that needs less' build/release/berth
  fi
}

# pack_hardware FOLDER [BUILD]: leaves the folder and the archive in FOLDER.
pack_hardware() {
  local folder=$1/berth-hardware chosen program
  chosen=$(packed_program "${@:2}") || return
  program=${chosen%%$'\n'*}
  rm -rf "$folder" && mkdir -p "$folder"
  cp tools/hardware/run tools/hardware/*.py "$program" "$folder"
  printf '%s, of %s\n' "${chosen#*$'\n'}" "$(date -r "$program" +%F)" >"$folder/PACKED"
  tar -C "$1" -czf "$folder.tar.gz" berth-hardware
}

# hardware_elsewhere FOLDER
hardware_elsewhere() {
  cat <<END
packed $1/berth-hardware.tar.gz, with $(<"$1/berth-hardware/PACKED")
On a machine with an NVIDIA driver and Python 3.8 or newer:
  tar -xzf berth-hardware.tar.gz && berth-hardware/run
and here, with the file that it writes:
  ./dev hardware --take hardware.json
END
}

cmd_hardware() {
  local folder=build/hardware build='' only_pack='' status=0
  if [[ ${1-} == --take ]]; then
    shift
    /usr/bin/python3 tools/hardware_page.py "$@"
    return
  fi
  while (($#)); do
    case $1 in
      --pack) only_pack=yes ;;
      --build | --to)
        (($# > 1)) || die "give $1 a folder"
        if [[ $1 == --to ]]; then folder=$2; else build=$2; fi
        shift
        ;;
      *) break ;;
    esac
    shift
  done
  if [[ -n $only_pack ]] && (($#)); then die "--pack runs nothing, and has no use for $1"; fi
  pack_hardware "$folder" ${build:+"$build"}
  if [[ -z $only_pack ]]; then "$folder/berth-hardware/run" --json "$folder/hardware.json" "$@" || status=$?; fi
  if [[ -n $only_pack ]] || ((status == 69)); then
    hardware_elsewhere "$folder"
    return 0
  fi
  return "$status"
}
