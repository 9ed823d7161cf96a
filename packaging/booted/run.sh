#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `./dev booted`: the packages on a booted Debian 12, on the software GPU: installed, at work, upgraded, purged. Needs root.
# The machine is systemd-nspawn on a root of mmdebstrap's, unpacked anew each time, and ends with this script.
#   packaging/booted/run.sh [--restarts N] [--break WHAT] [--json FILE]
# --break takes one thing away, and checks are to fail: packaging/booted/checks.py says which there are.
set -eu -o pipefail
cd -- "$(dirname -- "$0")/../.."
place=$PWD/build/booted
limit_s=600
restarts=5 broken="" json=""
while [ $# -gt 0 ]; do
  case $1 in
    --restarts) restarts=$2 ;;
    --break) broken=$2 ;;
    --json) json=$2 ;;
    *) echo "booted: unknown: $1 (--restarts N, --break WHAT, --json FILE)" >&2; exit 2 ;;
  esac
  shift 2
done
[ "$(id -u)" = 0 ] || { echo "booted: root is needed, to make a machine" >&2; exit 2; }

# A bare Debian, and what the packages ask for: the machine has no network.
make_root() {
  local wanted=systemd,systemd-sysv,dbus,procps,python3,libfmt9,libspdlog1.10,libsystemd0,libstdc++6,libprometheus-cpp-core1.0
  wanted=$wanted,libcivetweb1,libgrpc++1.51,libprotobuf32,libcurl4,libyaml-cpp0.7
  [ "$(cat "$place/root.list" 2>/dev/null)" = "$wanted" ] && return
  echo "booted: making a Debian 12 (minutes, once)"
  rm -f "$place/root.tar"
  mmdebstrap --quiet --variant=minbase --include="$wanted" bookworm "$place/root.tar"
  echo "$wanted" >"$place/root.list"
}

# The same again under a higher version.
make_newer() { # make_newer PACKAGE FOLDER
  local work=$place/repacked version
  version=$(dpkg-deb --field "$1" Version)
  rm -rf "$work"
  dpkg-deb --raw-extract "$1" "$work"
  sed -i -e "s/^Version: .*/Version: $version+newer/" -e "s/(= ${version//+/\\+})/(= $version+newer)/g" "$work/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone --build "$work" "$2" >/dev/null
  rm -rf "$work"
}

prepare() {
  rm -rf "$place/root" "$place/share"
  mkdir -p "$place/root" "$place/share/packages" "$place/share/newer"
  tar -x -C "$place/root" -f "$place/root.tar"
  local package
  for package in build/package/*.deb; do
    case $package in
      *-dbgsym_*) continue ;;
      */firebreak-dkms_*) continue ;; # it needs dkms, coccinelle and a kernel's headers, and touches nothing of the others
    esac
    cp "$package" "$place/share/packages/"
    make_newer "$package" "$place/share/newer/"
  done
  cp packaging/booted/checks.py build/dev/bin/kubelet-stand-in "$place/share/"
  printf '{"restarts": %s, "broken": "%s", "commit": "%s"}\n' "$restarts" "$broken" "$(git rev-parse HEAD)" \
    >"$place/share/options.json"
  # Its end is the machine's, and its status the machine's.
  cat >"$place/root/etc/systemd/system/booted.service" <<'UNIT'
[Unit]
After=basic.target dbus.service
SuccessAction=exit
FailureAction=exit
[Service]
Type=exec
ExecStart=/usr/bin/python3 -B /booted/checks.py
StandardOutput=append:/booted/checks.log
StandardError=append:/booted/checks.log
UNIT
  mkdir -p "$place/root/etc/systemd/system/multi-user.target.wants"
  ln -s ../booted.service "$place/root/etc/systemd/system/multi-user.target.wants/booted.service"
}

machine=
end_machine() {
  [ -z "$machine" ] || { kill "$machine" 2>/dev/null && wait "$machine"; } || true
  rm -rf "$place/root"
}

mkdir -p "$place"
make_root
prepare
trap end_machine EXIT
: >"$place/share/checks.log"
timeout -k 20 "$limit_s" systemd-nspawn --boot --quiet --register=no --keep-unit --private-network --capability=all \
  --system-call-filter="@debug kcmp pidfd_getfd" --machine="firebreak-booted-$$" --directory="$place/root" \
  --bind="$place/share:/booted" </dev/null >"$place/machine.log" 2>&1 &
machine=$!
tail -n +1 -F --pid="$machine" "$place/share/checks.log" 2>/dev/null || true
status=0
wait "$machine" || status=$?
machine=
[ "$status" != 124 ] || echo "booted: the machine did not end within $limit_s s (console: $place/machine.log)" >&2
if [ -n "$json" ] && [ -f "$place/share/booted.json" ]; then cp "$place/share/booted.json" "$json"; fi
exit "$status"
