# SPDX-License-Identifier: Apache-2.0
"""libfirebreak for Python: what a tenant of a shared GPU calls so that a standby can go on where it stopped.

    import firebreak

    with firebreak.join() as session:                  # as active or standby, as `firebreak run` placed us
        address = session.allocate("state", size)      # GPU memory that outlives this process
        if session.role is firebreak.Role.STANDBY:
            session.ready()
        resume = session.wait_promotion()              # at once where this process is the active one
        for number in range(resume.next_step, steps):
            with session.step(number, stream) as step: # commits at its end, unless an exception leaves it
                ...                                    # launch the step's kernels on `stream`
                step.change(0, new_bytes)

Every call is one of the C ABI (firebreak/firebreak.h), which says what it does, and fails with an exception that has the
library's message. Nothing here decides anything. PyTorch's memory in the vault: firebreak.torch_memory.
"""

from firebreak._library import library_path
from firebreak.errors import (
    ClientGoneError,
    CorruptError,
    CudaError,
    Error,
    FencedError,
    InvalidArgumentError,
    NoAgentError,
    NoMemoryError,
    RefusedError,
    Status,
    TimedOutError,
)
from firebreak.session import Connection, Memory, Resume, Role, Session, Step, join, small_context

__all__ = [
    "ClientGoneError",
    "Connection",
    "CorruptError",
    "CudaError",
    "Error",
    "FencedError",
    "InvalidArgumentError",
    "Memory",
    "NoAgentError",
    "NoMemoryError",
    "RefusedError",
    "Resume",
    "Role",
    "Session",
    "Status",
    "Step",
    "TimedOutError",
    "join",
    "library_path",
    "small_context",
]
