#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A user who may not go through a folder reaches what is in it by tests/reachable.sh alone; and nothing is left of that.
# usage: reachable_test.sh REACHABLE
set -eu
reachable=$1
[ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null || { echo "skipped: nobody may have a mount namespace here" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/home/tree/deep" "$folder/home/beside"
echo word >"$folder/home/tree/deep/file"
echo other >"$folder/home/beside/file"
chmod 711 "$folder"
chmod 700 "$folder/home" "$folder/home/tree"
as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
! $as_nobody cat "$folder/home/tree/deep/file" 2>/dev/null || { echo "the folder was open before" && exit 1; }
# shellcheck disable=SC2086 # a command and its options
seen=$("$reachable" "$folder/home/tree" $as_nobody sh -c 'cat "$0/tree/deep/file" "$0/beside/file" "$1"' "$folder/home" \
  "$folder/home/tree/deep/file")
[ "$seen" = "word
other
word" ] || { echo "it sees: $seen" && exit 1; }
[ "$(stat -c %a "$folder/home")" = 700 ] || { echo "the folder has other rights now" && exit 1; }
! grep -q "$folder" /proc/self/mountinfo || { echo "a mount is left" && exit 1; }
"$reachable" "$folder/home/tree" sh -c 'exit 7' && status=0 || status=$?
[ "$status" = 7 ] || { echo "its status is $status" && exit 1; }
