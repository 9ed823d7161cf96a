#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the proof's guest: run.sh KERNEL_IMAGE INITRAMFS [WORD=VALUE...]. Words: model, uvm, proof; commas stand for spaces.
# Needs no KVM; the kernel does not test its ciphers, which once did not end here. The last line tells how the guest program ended; so does the exit status.
set -euo pipefail
image=$1 initramfs=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
timeout -k 5 "${GUEST_TIMEOUT_S:-240}" qemu-system-x86_64 -M q35 -cpu max -smp 2 -m "${GUEST_MIB:-1024}" -nographic -no-reboot \
  -nodefaults -serial stdio -device edu -device edu -kernel "$image" -initrd "$initramfs" \
  -append "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable no_timer_check cryptomgr.notests $*" </dev/null | tr -d '\r' | tee "$log"
status=$(sed -n 's/^proof ended with //p' "$log")
grep -q '^modules are gone' "$log" || status=${status:-9}
exit "${status:-9}"
