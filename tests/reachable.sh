#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command where every user can go through to a folder: root's home lets nobody, and tests that run as another user
# have to reach the programs. In a mount namespace that ends with the command, so nothing of the machine is changed.
# usage: reachable.sh FOLDER COMMAND...
set -eu
if [ "${1:-}" != --inside ]; then
  folder=$1
  shift
  above=$folder
  closed=
  while [ "$above" != / ]; do
    case $(stat -c %A -- "$above") in *[xt]) ;; *) closed="$above
$closed" ;; esac
    above=$(dirname -- "$above")
  done
  # Who is not root has no other user's programs to run; who may not have a namespace goes without.
  if [ -z "$closed" ] || [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then exec "$@"; fi
  exec unshare --mount --propagation private "$0" --inside "$closed" "$@"
fi
closed=$2
shift 2

# In the place of a folder one that has the same in it and lets everybody through.
open_up() { # open_up FOLDER
  new=$(mktemp -d)
  mount -t tmpfs -o mode=711 tmpfs "$new"
  for each in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    name=$new/${each##*/}
    if [ -L "$each" ]; then
      cp -P -- "$each" "$name"
    elif [ -d "$each" ]; then
      mkdir -- "$name"
      mount --rbind -- "$each" "$name"
    elif [ -e "$each" ]; then
      : >"$name"
      mount --bind -- "$each" "$name"
    fi
  done
  mount --rbind "$new" "$1"
  umount -l "$new"
  rmdir "$new"
}

# From the outermost to the innermost.
while [ -n "$closed" ]; do
  open_up "${closed%%
*}"
  closed=${closed#*
}
done
cd -- "$PWD"
exec "$@"
