# Sourced by tools/run and tools/test: what a fresh Debian 12 or 13 lacks, and the build.
# Quick when nothing is missing. Expects $top; sets $build.

build=${SSEBENCH_BUILD:-$top/build}

to_build="meson ninja-build pkg-config gcc libc6-dev libwebsockets-dev libwebsockets-evlib-ev libev-dev
libevent-dev libyajl-dev libseccomp-dev libssl-dev zlib1g-dev libyaml-dev libhttp-parser-dev python3"
to_test="libcmocka-dev python3-pytest python3-pytest-rerunfailures python3-websocket chromium firefox-esr procps curl"
# For LAB=1: the real things that tests use, and what makes their folders (libclang-rt: of either Debian).
to_lab="debootstrap clang libclang-rt-14-dev libclang-rt-19-dev nginx-light caddy haproxy apache2-bin man-db
openssh-server python3-pip"

say() {
    printf '%s\n' "$*" >&2
}

# The packages of "$@" that are not installed, on one line.
missing_packages() {
    for p; do
        [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | cut -c1-2)" = ii ] ||
            printf '%s ' "$p"
    done
}

policy=/usr/sbin/policy-rc.d

# Run "$@" so that no package it installs starts a service. A shell of its own: its traps end with
# it, and what was forbidden does not stay so when it is interrupted.
without_services() (
    if ! [ -e "$policy" ]; then
        trap 'as_root rm -f "$policy"' EXIT
        trap 'exit 130' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy"
    fi
    "$@"
)

# Of "$@" those this Debian knows: a library that a release dropped must not stop the rest.
known_packages() {
    for p; do
        apt-cache show "$p" >/dev/null 2>&1 && printf '%s ' "$p"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

can_be_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }
}

# Install what is missing of "$@", or say how and stop.
need_packages() {
    command -v dpkg-query >/dev/null || return 0 # no Debian: meson will name what it lacks
    command -v npm >/dev/null || set -- "$@" nodejs npm
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if ! can_be_root; then
        say "Packages are missing, and there is neither root nor sudo to install them. Run:"
        say "    apt-get install --no-install-recommends $missing"
        exit 1
    fi
    say "Installing: $missing"
    as_root apt-get update -q >&2 || say "apt-get update failed; trying with the lists at hand"
    missing=$(known_packages $missing)
    [ -z "$missing" ] || without_services as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing >&2 || exit 1
}

# node_modules of a folder, if its lock file is newer than what is there.
need_modules() {
    [ -f "$1/package-lock.json" ] || return 0
    [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] && return 0
    say "npm ci in $1"
    (cd "$1" && npm ci --no-audit --no-fund --loglevel=error </dev/null >&2) || exit 1
    touch "$1/node_modules/.package-lock.json"
}

# Build into $build; further arguments go to `meson setup` when the folder is new.
need_build() {
    need_modules "$top/worker/web"
    mkdir -p "$build"
    log=$build/last-build.log
    [ -f "$build/build.ninja" ] || meson setup "$build" "$top" "$@" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        exit 1
    }
    ninja -C "$build" >"$log" 2>&1 || {
        tail -n 60 "$log" >&2
        exit 1
    }
}
