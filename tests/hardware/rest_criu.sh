#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An unmodified program under MPS is suspended, dumped and ended by CRIU, restored, and resumed; it compares every word
# of every result. For a machine with a GPU, root, MPS and CRIU 4.2 (Debian 12's does not start on Linux 6.18).
#
#     tests/hardware/rest_criu.sh BIN [COMMAND...]
#
# BIN: the folder with the programs. COMMAND: firebreak-checker where nothing is said; `python3 .../steps_torch.py FILE`,
# with $UNTIL as FILE. CRIU: the program. Without an agent: the script writes the word on the program's page itself, and
# ends all MPS daemons while the program is away. Exit 77: `criu check` fails here. Exit 1: a word was wrong, or
# something failed.
set -u
bin=$(cd "$1" && pwd); shift
criu=${CRIU:-criu}
"$criu" check >/dev/null 2>&1 || { echo "skipped: $criu check fails here"; exit 77; }
folder=$(mktemp -d /tmp/firebreak-criu.XXXXXX)
export UNTIL=$folder/until
mps() { mkdir -p "$folder/$1" "$folder/$1.log"
  CUDA_MPS_PIPE_DIRECTORY=$folder/$1 CUDA_MPS_LOG_DIRECTORY=$folder/$1.log nvidia-cuda-mps-control "${@:2}" >/dev/null 2>&1; }
end_mps() { for name in a b anchor; do echo "quit -t 1" | mps "$name"; done; }
trap 'end_mps; rm -rf "$folder"' EXIT
for name in a b anchor; do mps "$name" -d; done
[ $# -gt 0 ] || set -- "$bin/firebreak-checker" --until "$UNTIL"
CUDA_MPS_PIPE_DIRECTORY=$folder/anchor FIREBREAK_SPARE=$folder/a:$folder/b FIREBREAK_GUARD=0 \
  LD_PRELOAD=$bin/../lib/libfirebreak-guard.so setsid "$@" </dev/null >"$folder/out" 2>"$folder/err" &
program=$!

# go_to LEVEL: asks on the page, and prints why not where it was refused. 0 awake, 2 without contexts, 3 without memory.
go_to() { python3 - "$program" "$1" <<'PY'
import ctypes, mmap, os, pathlib, struct, sys, time
pid, level = int(sys.argv[1]), int(sys.argv[2])
WAKE = 28
def page():
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        if "firebreak-spare" in os.readlink(fd):
            with open(fd, "r+b", buffering=0) as file:
                return mmap.mmap(file.fileno(), 4096)
memory = page()
word = lambda at: struct.unpack_from("<I", memory, at)[0]
ASKED = 1368  # asked, answered, level: three words of shared/abi/spare_page.h; tests/virtual/rest_test.cpp has them
end = time.monotonic() + 60
while level != 0 and word(12) != 1 and time.monotonic() < end:  # protected
    time.sleep(0.05)
question = (word(ASKED) & ~3) + 4 + level
struct.pack_into("<I", memory, ASKED, question)
struct.pack_into("<I", memory, WAKE, word(WAKE) + 1)
address = ctypes.addressof(ctypes.c_uint32.from_buffer(memory, WAKE))
ctypes.CDLL(None).syscall(202, ctypes.c_void_p(address), 1, 2**31 - 1, None, None, 0)
while word(ASKED + 4) != question and time.monotonic() < end:
    time.sleep(0.001)
sys.exit(0 if word(ASKED + 8) == level else 1)
PY
}
fail() { echo "failed: $1"; tail -3 "$folder/out" "$folder/err"; kill -9 "$program" 2>/dev/null; exit 1; }
sleep 5
go_to 3 || fail "it does not rest"
ls -l "/proc/$program/fd" | grep -c /dev/nvidia
mkdir "$folder/image"
"$criu" dump -t "$program" -D "$folder/image" -o dump.log -v4 || fail "the dump: $(grep Error "$folder/image/dump.log" | tail -3)"
kill -0 "$program" 2>/dev/null && fail "it is still there"
echo "dumped: $(du -sh "$folder/image" | cut -f1)"
end_mps; sleep 1
for name in a b; do mps "$name" -d; done
"$criu" restore -D "$folder/image" -d -o restore.log -v4 || fail "the restore: $(grep Error "$folder/image/restore.log" | tail -3)"
go_to 0 || fail "it does not come back"
sleep 3; touch "$UNTIL"
for _ in $(seq 100); do kill -0 "$program" 2>/dev/null || break; sleep 0.1; done
tail -1 "$folder/out"
tail -1 "$folder/out" | grep -qE '"wrong(_words)?": 0[,}]'
