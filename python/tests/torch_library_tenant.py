# SPDX-License-Identifier: Apache-2.0
"""torch_library_tenant.py FILE SIZE...: allocates as PyTorch would, and says what it got."""

import ctypes
import signal
import sys

import firebreak
from firebreak import _library
from soft_cuda import Cuda


def load() -> ctypes.CDLL:
    loaded = ctypes.CDLL(_library.beside("libfirebreak-torch.so.0"))
    loaded.fb_torch_attach.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    for kind in ("weights", "state"):
        function = getattr(loaded, f"fb_torch_allocate_{kind}")
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    loaded.fb_torch_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    return loaded


def allocate_all(pools: ctypes.CDLL, sizes: list[int]) -> list[int]:
    """One of the first size is freed and asked for again in between: it comes back, and changes no name."""
    found = []
    for kind in ("weights", "state"):
        allocate = getattr(pools, f"fb_torch_allocate_{kind}")
        first = allocate(sizes[0], 0, None)
        pools.fb_torch_free(first, sizes[0], 0, None)
        for size in sizes:
            found.append(allocate(size, 0, None))
        assert found[-len(sizes)] == first
    return found


def main(output: str, sizes: list[int]) -> None:
    cuda = Cuda()
    pools = load()
    with open(output, "w", buffering=1, encoding="ascii") as out:
        assert pools.fb_torch_allocate_state(2 << 20, 0, None) is None, "nobody is attached"
        session = firebreak.join()
        assert pools.fb_torch_attach(session.handle, 2000) == firebreak.Status.OK
        addresses = allocate_all(pools, sizes)
        if None in addresses:
            out.write(f"{session.last_error}\ndown\n")
            return
        if session.role is firebreak.Role.ACTIVE:
            for number, address in enumerate(addresses):
                cuda.fill(address, 1000 + number)
            cuda.synchronize()
        for address in addresses:
            out.write(f"{address:#x} {int.from_bytes(cuda.read(address, 4), 'little')}\n")
        if session.role is firebreak.Role.STANDBY:
            session.ready()
        else:
            session.commit(0, b"", cuda.stream)
            cuda.synchronize()
        out.write("up\n")
        if session.role is firebreak.Role.ACTIVE:
            signal.pause()  # until it is killed
        session.wait_promotion()
        out.write("promoted\n")
        session.leave()


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
