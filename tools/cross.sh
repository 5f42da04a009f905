# shellcheck shell=bash
# What runs on Linux distributions that are older than Debian 12: compiled by zig, whose package has
# clang, libc++ and the symbols of each glibc. Everything lies below build/cross. docs/packages.md
# explains the choices.

cross=build/cross
cross_machines=(x86_64 aarch64)
declare -A cross_glibc=([x86_64]=2.17 [aarch64]=2.28)

# quietly NAME COMMAND…: one line on the terminal, the whole in build/log/NAME.log, the log's end
# when it fails.
quietly() {
  local name=$1 start=$SECONDS status
  shift
  mkdir -p build/log
  printf '  %-26s' "$name"
  # In a condition, bash would let a function go on after a command that fails.
  set +e
  (
    set -e
    "$@"
  ) >"build/log/$name.log" 2>&1
  status=$?
  set -e
  if ((status == 0)); then
    printf '%5d s\n' $((SECONDS - start))
    return 0
  fi
  printf 'FAILED\n'
  tail -n 40 "build/log/$name.log" | sed 's/^/    | /' >&2
  die "could not make the packages (build/log/$name.log)"
}

# once NAME "FILE…" COMMAND…: runs the command unless it has been run with the same files before.
once() {
  local name=$1 files
  read -ra files <<<"$2"
  sha256sum "${files[@]}" | cmp -s - "$cross/$name.made" && return 0
  quietly "${@:3}"
  sha256sum "${files[@]}" >"$cross/$name.made"
}

cross_tools() {
  rm -rf "$cross/tools"
  grep -hE '^(scikit-build-core|nanobind|wheel|mkdocs|mkdocs-material)==' tests/requirements.txt |
    cat packaging/cross/tools.txt - >"$cross/tools.pins"
  /usr/bin/python3 -m venv "$cross/tools"
  "$cross/tools/bin/pip" install -q --disable-pip-version-check -r "$cross/tools.pins"
}

# The sources of OpenSSL, zlib and SQLite, as crates carry them: a crate's version never changes,
# and Cargo.lock has its hash.
cross_sources() {
  rm -rf "$cross/sources"
  cargo vendor --locked --quiet --versioned-dirs --manifest-path packaging/cross/Cargo.toml "$cross/sources" >/dev/null
}

# The headers of each CPython that a wheel has an extension for. No Debian release has all of them.
cross_python_headers() {
  local version hash jar folder
  rm -rf "$cross/python"
  mkdir -p "$cross/python/jars"
  while read -r version hash; do
    jar=cpython-$version-linux-x86_64.jar
    mvn -q -B dependency:copy "-Dartifact=org.bytedeco:cpython:$version:jar:linux-x86_64" \
      "-DoutputDirectory=$cross/python/jars"
    sha256sum -c --quiet - <<<"$hash  $cross/python/jars/$jar"
    "$cross/tools/bin/python" - "$cross/python/jars/$jar" "$cross/python" <<'END'
import pathlib, sys, zipfile

jar, folder = sys.argv[1:]
with zipfile.ZipFile(jar) as archive:
    for name in archive.namelist():
        before, found, below = name.partition("/include/")
        if found and not name.endswith("/"):
            header = pathlib.Path(folder, below)
            header.parent.mkdir(parents=True, exist_ok=True)
            header.write_bytes(archive.read(name))
END
  done < <(grep -v '^#' packaging/cross/python-headers.txt)
  rm -r "$cross/python/jars"
  # Python.h of 3.9 reads this where its own machine had it, and an extension needs nothing of it.
  for folder in "$cross"/python/python*; do : >"$folder/crypt.h"; done
}

# cross_compilers MACHINE: programs that stand for zig with one target, as CMake and Configure want
# a compiler to be one word.
cross_compilers() {
  local machine=$1 bin=$cross/$1/bin zig name
  zig=$PWD/$(echo "$cross"/tools/lib/python3*/site-packages/ziglang/zig)
  mkdir -p "$bin"
  for name in cc c++; do
    printf '#!/bin/sh\nexec %q %s -target %s-linux-gnu.%s "$@"\n' "$zig" "$name" "$machine" "${cross_glibc[$machine]}"
  done | split -l 2 - "$bin/"
  mv "$bin/aa" "$bin/cc"
  mv "$bin/ab" "$bin/c++"
  for name in ar ranlib objcopy; do printf '#!/bin/sh\nexec %q %s "$@"\n' "$zig" "$name" >"$bin/$name"; done
  chmod +x "$bin"/*
}

# The compiler's own version, and not the wrapper's time or place, tells ccache what it has seen.
cross_environment() {
  local launcher=''
  export ZIG_GLOBAL_CACHE_DIR=$PWD/$cross/zig ZIG_LOCAL_CACHE_DIR=$PWD/$cross/zig
  export SOURCE_DATE_EPOCH
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
  if command -v ccache >/dev/null; then
    use_ccache
    launcher='ccache '
    CCACHE_COMPILERCHECK="string:$(<packaging/cross/tools.txt) $1 ${cross_glibc[$1]}"
    export CCACHE_COMPILERCHECK CCACHE_COMPILERTYPE=clang CCACHE_BASEDIR=$PWD
  fi
  cross_cc=$launcher$PWD/$cross/$1/bin/cc
}

# What is left out, no TLS of today uses.
openssl_without=(no-shared no-tests no-apps no-docs no-module no-legacy no-engine no-deprecated no-aria no-bf no-blake2
  no-camellia no-cast no-cmp no-cms no-ct no-des no-dh no-dsa no-dtls no-gost no-idea no-md4 no-mdc2 no-ocb no-ocsp no-quic no-rc2 no-rc4
  no-rmd160 no-scrypt no-seed no-siphash no-siv no-sm2 no-sm3 no-sm4 no-srp no-srtp no-ssl3 no-tls1 no-tls1_1 no-ts no-whirlpool)

# cross_libraries MACHINE: OpenSSL, zlib and SQLite as archives.
cross_libraries() {
  local machine=$1 root=$PWD/$cross/$1/root sources=$PWD/$cross/sources work=$cross/$1/libraries name
  cross_environment "$machine"
  rm -rf "$root" "$work"
  mkdir -p "$root/include" "$root/lib" "$work/openssl"
  # Of these only the headers are used. With /usr/include itself on its path, the compiler would
  # find this machine's glibc.
  for name in boost fmt nlohmann toml++; do ln -s "/usr/include/$name" "$root/include/$name"; done
  (
    cd "$work/openssl"
    CC=$cross_cc AR=$PWD/../../bin/ar RANLIB=$PWD/../../bin/ranlib CFLAGS='-O2 -g0 -fPIC' perl "$sources"/openssl-src-*/openssl/Configure \
      "linux-$machine" "${openssl_without[@]}" --prefix="$root" --libdir=lib --openssldir=/etc/ssl
    make -s -j"$(nproc)" build_libs
    cp -r include/openssl "$root/include"
    cp -rn "$sources"/openssl-src-*/openssl/include/openssl "$root/include"
    cp libssl.a libcrypto.a "$root/lib"
  )
  cp "$sources"/libsqlite3-sys-*/sqlite3/sqlite3.h "$sources"/libz-sys-*/src/zlib/{zlib,zconf}.h "$root/include"
  (
    cd "$work"
    # As Debian's, in what Berth uses of it. An extension would have to be loaded from a file.
    $cross_cc -O2 -g0 -fPIC -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DQS=0 -c "$sources"/libsqlite3-sys-*/sqlite3/sqlite3.c
    ../bin/ar rcs "$root/lib/libsqlite3.a" sqlite3.o
    for source in "$sources"/libz-sys-*/src/zlib/*.c; do
      [[ $source == */gz*.c ]] || $cross_cc -O2 -g0 -fPIC -DHAVE_UNISTD_H -c "$source" -o "z-$(basename "${source%.c}").o"
    done
    ../bin/ar rcs "$root/lib/libz.a" z-*.o
  )
}

# cross_build MACHINE: leaves what is to be installed in build/cross/MACHINE/installed. Completions
# and the manual are what the native program says.
cross_build() {
  local machine=$1 build=$cross/$1/build
  cross_environment "$machine"
  [[ -f $build/build.ninja ]] ||
    cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
      -DCMAKE_TOOLCHAIN_FILE=packaging/cross/toolchain.cmake -DBERTH_CROSS="$PWD/$cross/$machine" -DBERTH_CROSS_MACHINE="$machine" \
      -DBERTH_PRECOMPILE=OFF -DBUILD_TESTING=OFF -DBERTH_PYTHON=ON -DBERTH_PYTHON_HEADERS="$PWD/$cross/python" \
      -DBERTH_NANOBIND="$(echo "$PWD/$cross"/tools/lib/python3*/site-packages/nanobind)" \
      -DBERTH_NATIVE="$PWD/build/package/berth" -DCMAKE_INSTALL_LIBDIR=lib
  cmake --build "$build"
  rm -rf "$cross/$machine/installed"
  cmake --install "$build" --prefix "$cross/$machine/installed"
}

# cross_compile: all of it, each step once.
cross_compile() {
  local machine
  once sources packaging/cross/Cargo.lock cross-sources cross_sources
  once python-headers packaging/cross/python-headers.txt cross-python-headers cross_python_headers
  for machine in "${cross_machines[@]}"; do
    mkdir -p "$cross/$machine"
    cross_compilers "$machine"
    once "libraries-$machine" 'packaging/cross/tools.txt packaging/cross/Cargo.lock tools/cross.sh' \
      "cross-libraries-$machine" cross_libraries "$machine"
    quietly "cross-build-$machine" cross_build "$machine"
  done
}
