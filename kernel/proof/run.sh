#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the proof's guest: run.sh KERNEL_IMAGE INITRAMFS [WORD=VALUE...]. Words: model, uvm, proof; commas stand for spaces.
# Needs no KVM; the kernel does not test its ciphers, which once did not end here. The last line tells how the guest program ended; so does the exit status.
# Its clock is the HPET: a busy machine once made the guest's kernel take the processor's counter for one four times as slow.
# A processor of the guest that does nothing else for two minutes is the end of the guest, with its stack and the other's.
# A guest whose kernel stands still before its first program runs says nothing of the modules: it is ended after GUEST_BOOT_S and started again.
set -euo pipefail
image=$1 initramfs=$2
shift 2
scratch=$(mktemp -d)
end_guest() { kill "$(cat "$scratch/pid" 2>/dev/null)" 2>/dev/null || true; } # QEMU takes its pidfile with it
trap 'end_guest; rm -rf "$scratch"' EXIT

guest() {
  timeout -k 5 "${GUEST_TIMEOUT_S:-240}" qemu-system-x86_64 -M q35 -cpu max -smp 2 -m "${GUEST_MIB:-1024}" -nographic -no-reboot \
    -nodefaults -serial stdio -device edu -device edu -pidfile "$scratch/pid" -kernel "$image" -initrd "$initramfs" \
    -append "console=ttyS0 panic=-1 quiet mitigations=off clocksource=hpet tsc=reliable no_timer_check cryptomgr.notests watchdog_thresh=60 softlockup_panic=1 softlockup_all_cpu_backtrace=1 $*" </dev/null |
    sed -u 's/\r//g' | tee "$scratch/log"
}

is_up() { grep -q '^guest is up' "$scratch/log"; }

for attempt in 1 2 3; do
  guest "$@" &
  running=$!
  for ((waited = 0; waited < ${GUEST_BOOT_S:-90}; waited++)); do
    { is_up || ! kill -0 "$running"; } 2>/dev/null && break
    sleep 1
  done
  is_up 2>/dev/null || end_guest
  wait "$running" || true
  is_up && break
  echo "the guest did not come up (attempt $attempt)" >&2
done
status=$(sed -n 's/^proof ended with //p' "$scratch/log")
grep -q '^modules are gone' "$scratch/log" || status=${status:-9}
exit "${status:-9}"
