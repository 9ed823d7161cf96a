# SPDX-License-Identifier: Apache-2.0
"""The simulator: what it is made of, what it says of cases that can be counted by hand, and what a bad trace gets."""

import ast
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from torch_diffusion import schedule, server, simulator
from torch_diffusion.costs import MEASURED, H200
from torch_diffusion.shapes import SHAPES, STEPS
from torch_diffusion.simulator import Arrival, CutTraceError

FOLDER = pathlib.Path(simulator.__file__).parent


class Even:
    """schedule.Costs: a second a step, and a picture more is half of one more."""

    def step_s(self, shape: str, batch: int) -> float:
        return 1 + 0.5 * (batch - 1)

    def batch_most(self, shape: str) -> int:
        return 1 if SHAPES[shape].is_video else 2


def run(policy: str, arrivals: list[Arrival], gpus: int = 1, patience_s: float = math.inf) -> list[float]:
    """When each ends."""
    found = simulator.simulate(arrivals, schedule.policy_of(policy, 1.0), gpus, Even(), 1.0, patience_s)
    return [each.ended_s for each in found]


class OneSchedule(unittest.TestCase):
    def test_the_server_and_the_simulator_decide_by_one_file(self) -> None:
        self.assertIs(server.schedule, simulator.schedule)
        self.assertEqual(pathlib.Path(schedule.__file__).parent, FOLDER)
        for name in ("server.py", "simulator.py"):
            tree = ast.parse((FOLDER / name).read_text())
            calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
            self.assertIn("schedule.choose", calls, name)
            self.assertIn("schedule.policy_of", calls, name)


class ByHand(unittest.TestCase):
    VIDEO_THEN_IMAGE = [Arrival(0.0, "480p", 99.0, 5), Arrival(1.5, "512", 3.0, 2)]

    def test_a_video_is_paused_between_two_steps(self) -> None:
        self.assertEqual(run("first_come", self.VIDEO_THEN_IMAGE), [5.0, 7.0])
        for policy in ("shortest_remaining", "earliest_deadline", "program"):
            self.assertEqual(run(policy, self.VIDEO_THEN_IMAGE), [7.0, 4.0], policy)
        self.assertEqual(run("first_come", self.VIDEO_THEN_IMAGE, gpus=2), [5.0, 3.5])

    def test_a_gpu_that_computes_is_given_to_nobody_else(self) -> None:
        videos = [Arrival(0.0, "480p", 99.0, 4), Arrival(0.5, "480p", 99.0, 4), Arrival(0.6, "480p", 99.0, 4)]
        self.assertEqual(run("first_come", videos, gpus=2), [4.0, 4.5, 8.0])

    def test_pictures_are_batched_where_that_helps(self) -> None:
        pictures = [Arrival(0.0, "512", 3.0, 2), Arrival(0.0, "512", 3.0, 2)]
        self.assertEqual(run("earliest_deadline", pictures), [2.0, 4.0])
        self.assertEqual(run("program", pictures), [3.0, 3.0])

    def test_who_waits_too_long_has_a_round(self) -> None:
        arrivals = [Arrival(0.0, "480p", math.inf, 2)] + [Arrival(float(n), "512", 1.0, 1) for n in range(30)]
        self.assertGreater(run("program", arrivals)[0], 30)
        self.assertLess(run("program", arrivals, patience_s=5.0)[0], 15)

    def test_on_time_is_counted(self) -> None:
        outcomes = simulator.simulate(self.VIDEO_THEN_IMAGE, schedule.first_come, 1, Even(), 1.0)
        found = simulator.summary(outcomes)
        self.assertEqual((found["on_time"], found["images_on_time"], found["videos_on_time"]), (50.0, 0.0, 100.0))
        self.assertEqual((found["image_p90_s"], found["video_most_s"], found["paused_most_s"]), (5.5, 5.0, 3.5))


class AtOneLoad(unittest.TestCase):
    """The figures themselves are for a GPU; here is which way they go."""

    def test_the_program_is_never_below_a_baseline(self) -> None:
        costs = H200.read()
        round_s = simulator.round_of(costs)
        loads = [simulator.arrivals_of(seed, 120, 0.9, 1, costs) for seed in range(1, 6)]
        found = {}
        for name in schedule.POLICIES:
            patience_s = 30.0 if name == "program" else math.inf
            policy = schedule.policy_of(name, round_s)
            outcomes = [each for load in loads for each in simulator.simulate(load, policy, 1, costs, round_s, patience_s)]
            self.assertTrue(all(math.isfinite(each.ended_s) for each in outcomes))
            found[name] = simulator.summary(outcomes)
        program = found.pop("program")
        for name, other in found.items():
            self.assertGreaterEqual(program["on_time"], other["on_time"], name)
        self.assertGreaterEqual(program["on_time"], found["first_come"]["on_time"] + 15)
        self.assertGreaterEqual(found["first_come"]["image_p90_s"], 3 * program["image_p90_s"])

    def test_arrivals_follow_from_the_seed(self) -> None:
        costs = H200.read()
        self.assertEqual(simulator.arrivals_of(3, 50, 0.9, 1, costs), simulator.arrivals_of(3, 50, 0.9, 1, costs))
        self.assertNotEqual(simulator.arrivals_of(3, 50, 0.9, 1, costs), simulator.arrivals_of(4, 50, 0.9, 1, costs))
        found = simulator.arrivals_of(3, 4000, 0.5, 2, costs)
        work_s = sum(STEPS * costs.step_s(each.shape, 1) for each in found)
        self.assertAlmostEqual(work_s / found[-1].at_s / 2, 0.5, delta=0.05)


class Costs(unittest.TestCase):
    def test_they_are_what_was_measured(self) -> None:
        measured = json.loads(MEASURED.read_text())
        costs = H200(measured)
        faster = json.loads(MEASURED.read_text())
        faster["ways"]["deadline"]["video"]["solo_s"] /= 2
        self.assertAlmostEqual(H200(faster).step_s("480p", 1), costs.step_s("480p", 1) / 2)
        small_step_s = costs.step_s("512", 1)
        images = measured["ways"]["deadline"]["images"]
        self.assertAlmostEqual(images["first_step_p50_ms"] / 1e3 + 19 * small_step_s, images["p50_ms"] / 1e3)

    def test_more_pictures_never_take_less(self) -> None:
        costs = H200.read()
        for shape in SHAPES:
            steps_s = [costs.step_s(shape, batch) for batch in range(1, 9)]
            self.assertEqual(steps_s, sorted(steps_s))
        self.assertAlmostEqual(costs.step_s("1024", 2), 2 * costs.step_s("1024", 1))


class Traces(unittest.TestCase):
    TRACE = [Arrival(0.5, "512", 1.25), Arrival(0.5, "480p", math.inf, 7), Arrival(2.0, "1024", -3.0)]

    def test_a_trace_is_read_as_it_was_written(self) -> None:
        self.assertEqual(simulator.read_trace(simulator.write_trace(self.TRACE)), self.TRACE)

    def test_wherever_it_is_cut_the_line_is_named(self) -> None:
        whole = simulator.write_trace(self.TRACE)
        for length in range(len(whole)):
            with self.assertRaises(CutTraceError) as found:
                simulator.read_trace(whole[:length])
            self.assertRegex(str(found.exception), rf"line {whole[:length].count(chr(10)) + 1}\b", whole[:length])

    def test_a_wrong_line_is_named(self) -> None:
        for wrong in ("1 513 1 20", "1 512 1", "x 512 1 20", "1 512 nan 20", "inf 512 1 20", "1 512 1 0", "0.1 512 1 20"):
            with self.assertRaisesRegex(CutTraceError, "line 2 of the trace"):
                simulator.read_trace(f"0.5 512 1 20\n{wrong}\nend\n")

    def test_the_command(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            self.ask("--write-trace", str(trace), "--requests", "20")
            said = self.ask("--trace", str(trace)).stdout.splitlines()
            self.assertEqual([json.loads(line)["policy"] for line in said], list(schedule.POLICIES))
            trace.write_text(trace.read_text()[:-10])
            cut = self.ask("--trace", str(trace))
            self.assertEqual((cut.returncode, cut.stdout), (1, ""))
            self.assertIn("line 20 of the trace is cut", cut.stderr)

    def ask(self, *options: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "torch_diffusion.simulator", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


if __name__ == "__main__":
    unittest.main()
