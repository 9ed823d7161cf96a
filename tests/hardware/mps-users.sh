#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clients of three users come to one MPS daemon, 0.7 s after each other, for 6 s each: with -multiuser-server and
# without it. For a machine with a GPU, root and MPS.
#
#   tests/hardware/mps-users.sh > RESULT.txt
set -u
scratch=$(mktemp -d /tmp/fbu.XXXX)
chmod 755 "$scratch"
cat > "$scratch/client.py" <<'PYTHON'
import ctypes, os, sys, time
cuda, began, context, memory = ctypes.CDLL("libcuda.so.1"), time.time(), ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
made = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4))
print(f"user {os.getuid()}: context {made} after {time.time() - began:.2f} s", flush=True)
end, fills, result = time.time() + float(sys.argv[1]), 0, 0
while time.time() < end and result == 0:
    result = cuda.cuMemsetD32_v2(memory, ctypes.c_uint(1), ctypes.c_size_t(1)) or cuda.cuCtxSynchronize()
    fills += 1
print(f"user {os.getuid()}: {fills} fills, {result}", flush=True)
PYTHON
ask() { echo "$1" | timeout 5 nvidia-cuda-mps-control; }
for option in "" -multiuser-server; do
  echo "=== nvidia-cuda-mps-control -f $option"
  export CUDA_MPS_PIPE_DIRECTORY=$scratch/pipe$option CUDA_MPS_LOG_DIRECTORY=$scratch/log$option
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
  # shellcheck disable=SC2086
  nvidia-cuda-mps-control -f $option > "$scratch/out" 2>&1 &
  daemon=$!
  sleep 1
  clients=()
  for user in 0 1001 1002; do
    timeout -k 2 30 setpriv --reuid=$user --regid=$user --clear-groups /usr/bin/python3 "$scratch/client.py" 6 &
    clients+=($!)
    sleep 0.7
  done
  sleep 3
  for server in $(ask get_server_list); do
    echo "server of user $(stat -c %u "/proc/$server")"
    for client in $(ask "get_client_list $server"); do echo "  client of user $(stat -c %u "/proc/$client")"; done
  done
  wait "${clients[@]}"
  ask "quit -t 2"
  sleep 1
  kill "$daemon" 2> /dev/null
done
rm -rf "$scratch"
