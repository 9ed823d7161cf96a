#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/product/foreign-roots.sh BUILD/lib ROOT...: as root. The libraries that go into other people's programs, tried in
# the root file systems of other distributions, each with python3 in it. mmdebstrap makes one:
#   mmdebstrap --variant=minbase --include=python3 bullseye ROOT
# Says what each has, and fails at the first that does not work. Every function is bound at once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift

for root; do
  echo "$root: $(chroot "$root" ldd --version | head -n 1)"
  folder=$(mktemp -d "$root/tmp/foreign-XXXXXX")
  chmod 755 "$folder"
  trap 'rm -r "$folder"' EXIT
  inside=${folder#"$root"}
  cp -L "$build/libfirebreak.so.0" "$build/libfirebreak-guard.so" "$build/libfirebreak-inject.so" \
    "$build/libfirebreak-torch.so" "$build/libfirebreak_foreign_code.so" "$here/foreign_code.py" "$folder"
  in_root() {
    chroot "$root" env LD_BIND_NOW=1 "LD_LIBRARY_PATH=$inside" "$@"
  }
  # What a program says and how it ends is the same with each.
  for library in libfirebreak-guard.so libfirebreak.so.0 libfirebreak-inject.so libfirebreak-torch.so; do
    for command in /bin/true 'echo hi' 'ls -d /bin' 'python3 -c "import ssl; print(3)"'; do
      plain=$(in_root sh -c "$command" 2>&1)
      loaded=$(in_root "LD_PRELOAD=$inside/$library" sh -c "$command" 2>&1) || {
        echo "$command fails with $library: $loaded"
        exit 1
      }
      [ "$plain" = "$loaded" ] || {
        echo "$command says '$loaded' with $library, and '$plain' without"
        exit 1
      }
    done
  done
  # Loaded by a program that runs already.
  in_root python3 "$inside/foreign_code.py" "$inside/libfirebreak_foreign_code.so"
  in_root python3 -c "
import ctypes
library = ctypes.CDLL('$inside/libfirebreak.so.0')
library.fb_last_error.restype = ctypes.c_char_p
session = ctypes.c_void_p()
assert library.fb_join(None, ctypes.byref(session)) != 0
assert b'no agent' in library.fb_last_error(None), library.fb_last_error(None)
ctypes.CDLL('$inside/libfirebreak-torch.so')"
  rm -r "$folder"
  trap - EXIT
  echo "$root: works"
done
