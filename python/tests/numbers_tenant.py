# SPDX-License-Identifier: Apache-2.0
"""examples/numbers.c in Python: numbers_tenant.py FILE PAUSE_MS. Each step writes one number to GPU memory."""

import struct
import sys
import time

import firebreak
from soft_cuda import Cuda

STEPS = 300


def next_number(number: int) -> int:
    return (number * 1664525 + 1013904223) & 0xFFFFFFFF


def compute(session: firebreak.Session, cuda: Cuda, address: int, pause_s: float) -> None:
    resume = session.wait_promotion()
    number = struct.unpack("<I", resume.state)[0] if resume.state is not None else 1
    for index in range(resume.next_step, STEPS):
        with session.step(index, cuda.stream) as step:
            number = next_number(number)
            cuda.fill(address + 4 * index, number)
            step.change(0, struct.pack("<I", number))
        if resume.epoch > 0 and index == resume.next_step:
            cuda.synchronize()
            session.resumed()
        time.sleep(pause_s)


def main(output: str, pause_ms: str) -> None:
    cuda = Cuda()
    with firebreak.join() as session:
        address = session.allocate("numbers", 4 * STEPS)
        if session.role is firebreak.Role.STANDBY:
            session.ready()
        try:
            compute(session, cuda, address, int(pause_ms) / 1000)
        except firebreak.RefusedError:
            return  # the active has done it all
        cuda.synchronize()
        numbers = struct.unpack(f"<{STEPS}I", cuda.read(address, 4 * STEPS))
        with open(output, "w", encoding="ascii") as out:
            out.writelines(f"{each}\n" for each in numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
