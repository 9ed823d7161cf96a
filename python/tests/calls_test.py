# SPDX-License-Identifier: Apache-2.0
"""Each call by itself, of an active in this process; and how failures look."""

import ctypes
import gc
import os
import pathlib
import re
import subprocess
import sys
import unittest

import firebreak
from firebreak import _library
from soft_gpu import PROGRAMS, PYTHON_FOLDER, SoftGpuTest

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "firebreak" / "firebreak.h"


class Interface(unittest.TestCase):
    def test_every_function_of_the_header_is_declared(self) -> None:
        declared = set(re.findall(r"FB_API [^(]*?(fb_[a-z_]+)\(", HEADER.read_text()))
        self.assertIn("fb_join", declared)
        # allocate() is fb_alloc_as, which does what fb_alloc does; the loaded library names a status itself.
        self.assertEqual(declared - {"fb_alloc"}, set(_library._SIGNATURES))

    def test_statuses_are_those_of_the_library(self) -> None:
        for status in firebreak.Status:
            name = _library.library().fb_status_name(status).decode()
            self.assertEqual(name, "FB_OK" if status == 0 else f"FB_ERROR_{status.name}")

    def test_changes_live_as_long_as_their_array(self) -> None:
        from firebreak.session import _changes

        array, count = _changes((3 * n, bytes([n, 0, n])) for n in range(50))
        gc.collect()
        assert array is not None
        for n in range(count):
            address = ctypes.cast(array, ctypes.c_void_p).value or 0
            where = address + n * ctypes.sizeof(_library.Change) + _library.Change.bytes.offset
            pointer = ctypes.c_void_p.from_address(where).value or 0
            self.assertEqual(ctypes.string_at(pointer, array[n].size_bytes), bytes([n, 0, n]))

    def test_without_an_agent(self) -> None:
        with self.assertRaisesRegex(firebreak.NoAgentError, "FIREBREAK_SOCKET is not set"):
            firebreak.join(tenant="numbers", role=firebreak.Role.ACTIVE)
        with self.assertRaisesRegex(firebreak.Error, "no firebreak agent at /nowhere"):
            firebreak.join(socket_path="/nowhere", tenant="numbers", role=firebreak.Role.ACTIVE)

    def test_a_bad_name(self) -> None:
        with self.assertRaises(firebreak.InvalidArgumentError) as caught:
            firebreak.join(socket_path="/nowhere", tenant="a b", role=firebreak.Role.ACTIVE)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.status, firebreak.Status.INVALID_ARGUMENT)


class Calls(SoftGpuTest):
    """In a process of its own, in which the software GPU is loaded and nothing of the tests before."""

    def in_a_tenant(self, body: str, *options: str, name: str = "calls") -> None:
        script = self.folder / "script.py"
        script.write_text(
            "import sys\n"
            f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
            "import firebreak\n"
            "from soft_cuda import Cuda\n"
            "def raises(kind, words, call, *given):\n"
            "    try:\n"
            "        call(*given)\n"
            "    except kind as error:\n"
            "        assert words in str(error), str(error)\n"
            "        return\n"
            "    raise AssertionError(f'no {kind.__name__}')\n"
            "cuda = Cuda()\n" + body
        )
        self.assertEqual(self.run_tenant(name, list(options), [str(script)]).wait(120), 0)

    def test_memory(self) -> None:
        self.in_a_tenant(
            "session = firebreak.join()\n"
            "one = session.allocate('one', 100)\n"
            "weights = session.allocate('two', 5 << 20, firebreak.Memory.WEIGHTS)\n"
            "assert weights == one + (2 << 20), (one, weights)\n"
            "assert session.allocate('one', 100) == one\n"
            "assert cuda.read(weights, 64) == bytes(64)\n"
            "raises(firebreak.InvalidArgumentError, '', session.allocate, 'a b', 100)\n"
            "raises(ValueError, '0 bytes', session.allocate, 'three', 0)\n"
            "raises(MemoryError, 'addresses', session.allocate, 'four', 1 << 50)\n"
            "session.leave()\n"
            "raises(firebreak.InvalidArgumentError, 'has been left', session.ready)\n"
        )

    def test_shared_memory(self) -> None:
        self.in_a_tenant(
            "session = firebreak.join()\n"
            "raises(ValueError, 'no memory to share', session.share)\n"
            "raises(firebreak.TimedOutError, \"no tenant 'other' shares\", session.map_shared, 'other', 'a', 0.01)\n"
            "weights = session.allocate('weights', 5 << 20, firebreak.Memory.SHARED)\n"
            "assert weights >= 0x540000000000, weights\n"
            "assert cuda.read(weights, 64) == bytes(64)\n"
            "session.share()\n"
            "raises(ValueError, 'has shared its memory', session.share)\n"
            "assert session.map_shared('calls', 'weights') == weights\n"
            "raises(ValueError, 'but other', session.map_shared, 'calls', 'nothing')\n"
            "session.leave()\n"
        )
        self.in_a_tenant(
            "session = firebreak.join()\n"
            "weights = session.map_shared('calls', 'weights', 60.0)\n"
            "assert cuda.read(weights, 64) == bytes(64)\n"
            "session.leave()\n",
            name="reader",
        )

    def test_commits(self) -> None:
        self.in_a_tenant(
            "session = firebreak.join()\n"
            "assert session.role is firebreak.Role.ACTIVE\n"
            "assert session.wait_promotion() == firebreak.Resume(0, 0, None, 0)\n"
            "session.commit(0, b'all of it', cuda.stream)\n"
            "session.commit_changes(1, [(0, b'ALL'), (20, b'x')], cuda.stream)\n"
            "session.commit_changes(2, [], cuda.stream)\n"
            "raises(firebreak.InvalidArgumentError, 'step 7 out of order; 3 is next', session.commit, 7, b'')\n"
            "with session.step(3, cuda.stream) as step:\n"
            "    step.change(0, b'1')\n"
            "    step.replace(b'new')\n"
            "try:\n"
            "    with session.step(4, cuda.stream) as step:\n"
            "        raise KeyError('of the tenant')\n"
            "except KeyError:\n"
            "    pass\n"
            "session.heartbeat(cuda.stream)\n"
            "assert session.counter() % 8 == 0\n"
            "cuda.synchronize()\n"
            "assert session.committed() == 4, session.committed()\n"
            "raises(firebreak.InvalidArgumentError, 'standby', session.ready)\n"
            "raises(firebreak.InvalidArgumentError, 'no promotion', session.resumed)\n"
            "raises(firebreak.RefusedError, 'no standby that is ready', session.stand_down)\n"
            "session.leave()\n"
        )

    def test_turns(self) -> None:
        self.in_a_tenant(
            "import time\n"
            "session = firebreak.join()\n"
            "session.turn_wanted(20, time.monotonic() + 60)\n"
            "assert session.turn() is True\n"
            "assert session.turn(0) is True\n"
            "session.turn_wanted(0)\n"
            "session.leave()\n",
            "--class",
            "live",
        )

    def test_a_class_that_does_not_exist_is_refused(self) -> None:
        self.assertNotEqual(self.run_tenant("refused", ["--class", "first"], ["-c", ""]).wait(120), 0)

    def test_a_small_context(self) -> None:
        self.in_a_tenant(
            "context, is_small = firebreak.small_context(0, 4)\n"
            "assert context and is_small\n"
            "raises(firebreak.CudaError, 'INVALID', firebreak.small_context, 99)\n"
        )

    def test_a_tenant_has_one_active(self) -> None:
        self.in_a_tenant(
            "active = firebreak.join()\n"
            "raises(firebreak.Error, 'already has an active process', firebreak.join)\n"
            "active.leave()\n"
        )

    def test_a_standby_waits_as_long_as_it_is_told(self) -> None:
        self.in_a_tenant(
            "standby = firebreak.join()\n"
            "assert standby.role is firebreak.Role.STANDBY\n"
            "raises(firebreak.TimedOutError, \"no allocation 'one'\", standby.allocate, 'one', 100,"
            " firebreak.Memory.STATE, 0.01)\n"
            "raises(TimeoutError, 'no promotion in the given time', standby.wait_promotion, 0)\n"
            "raises(TimeoutError, 'no promotion in the given time', standby.wait_promotion, 0.25)\n"
            "raises(firebreak.InvalidArgumentError, 'does not commit', standby.commit, 0, b'')\n"
            "standby.leave()\n",
            "--standby",
        )

    def test_an_exception_leaves_the_tenant_undone(self) -> None:
        script = self.folder / "script.py"
        script.write_text("import firebreak\nwith firebreak.join() as session:\n    raise SystemExit(5)\n")
        self.assertEqual(self.run_tenant("undone", [], [str(script)]).wait(120), 5)


class Installed(unittest.TestCase):
    def test_the_library_is_found_beside_the_package(self) -> None:
        """As `cmake --install` lays it out; and FIREBREAK_LIBRARY_DIR goes before."""
        code = "import firebreak; print(firebreak.library_path())"
        environment = {**os.environ, "PYTHONPATH": str(PYTHON_FOLDER)}
        environment["FIREBREAK_LIBRARY_DIR"] = "/some/where"
        told = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        self.assertEqual(told.stdout.strip(), "/some/where/libfirebreak.so.0")
        self.assertTrue((PROGRAMS / "firebreak").exists())


if __name__ == "__main__":
    unittest.main()
