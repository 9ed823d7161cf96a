# SPDX-License-Identifier: Apache-2.0
"""firebreak-exporter beside a real agent on the software GPU, and Debian's Prometheus where it is installed: what is
scraped, the alerts and the dashboard."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request
from typing import Any

import text_format
from soft_gpu import PATIENCE_S, PROGRAMS, SoftGpuTest

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "prometheus"
UNPACKED = os.environ.get("FIREBREAK_PROMETHEUS", "")  # by `./dev test`, where it is not installed
CLASSES = ("mmu_replayable", "mmu_non_replayable", "sm", "termination", "device", "unknown")
OUTCOMES = ("contained", "parked", "failed_over", "lost")


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{UNPACKED}:{os.environ['PATH']}")


def fetch(url: str) -> tuple[str, str]:
    """The text, and what it calls itself."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


class ExporterTest(SoftGpuTest):
    """An agent, and an exporter of its own."""

    def setUp(self) -> None:
        super().setUp()
        self.said: pathlib.Path = self.folder / "exporter.log"
        self.url = self.start_exporter(str(self.folder / "d" / "status.sock"))

    def start_exporter(self, agent_socket: str) -> str:
        with open(self.said, "w", encoding="utf-8") as said:
            self.exporter = self.start(
                [str(PROGRAMS / "firebreak-exporter"), "--socket", agent_socket, "--listen", "127.0.0.1:0"],
                stdout=subprocess.PIPE, stderr=said,
            )
        assert self.exporter.stdout is not None
        line = self.exporter.stdout.readline()
        self.assertRegex(line, r"^firebreak-exporter: http://127\.0\.0\.1:[1-9]\d*/metrics$")
        return line.split()[1]

    def scrape(self) -> dict[str, text_format.Family]:
        text, kind = fetch(self.url)
        self.assertTrue(kind.startswith("text/plain"), kind)
        return text_format.read(text)

    def value(self, name: str, **labels: str) -> float | None:
        return text_format.value_of(self.scrape(), name, **labels)

    def until_value(self, wanted: float, name: str, **labels: str) -> None:
        def is_so() -> bool:
            return self.value(name, **labels) == wanted

        self.until(f"{name} {labels} {wanted}", is_so)

    def lines(self) -> list[str]:
        return self.said.read_text(encoding="utf-8").splitlines()

    def incidents(self) -> list[dict[str, Any]]:
        command = [str(PROGRAMS / "firebreak"), "incidents", "--socket", self.socket]
        done = [subprocess.run([*command, *how], env=self.environment, capture_output=True, text=True,
                               timeout=PATIENCE_S, check=True).stdout for how in ([], ["--json"])]
        faults: list[dict[str, Any]] = json.loads(done[1])
        self.assertEqual(len(done[0].splitlines()), len(faults) + 1)
        for line, fault in zip(done[0].splitlines()[1:], faults):
            self.assertIn(f"{fault['class']} ", line)
            self.assertIn(fault["what"], line)
        return faults

    def run_pair(self) -> subprocess.Popen[str]:
        """At work, and protected."""
        pair = self.start(
            [str(PROGRAMS / "firebreak"), "run", "--pair", "--socket", self.socket, "--name", "llm", "--",
             str(PROGRAMS / "firebreak-decode"), "--steps", "100000", "--output", str(self.folder / "tokens"),
             "--pace-ms", "50"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until_tenant("llm", lambda now: now["standby_state"] == "ready" and now["committed_steps"] > 1)
        return pair

    def fault(self) -> None:
        """In the pair's domain."""
        command = [str(PROGRAMS / "firebreak"), "run", "--socket", self.socket, "--name", "rogue", "--",
                   str(PROGRAMS / "firebreak-lab"), "inject", "misaligned-load"]
        subprocess.run(command, env=self.environment, timeout=PATIENCE_S, check=False, capture_output=True)
        self.until_tenant("llm", lambda now: now["epoch"] == 1)


class Metrics(ExporterTest):
    agent_options = ["--supervised"]

    def test_each_series_is_there_before_the_first_fault(self) -> None:
        families = self.scrape()
        for name, family in families.items():
            if name.startswith("firebreak_"):
                self.assertEqual(family.type == "counter", name.endswith("_total"), name)
            self.assertFalse([labels for _, labels in family.samples if "pid" in dict(labels)], name)
        for of in CLASSES:
            for outcome in OUTCOMES:
                faults = text_format.value_of(families, "firebreak_faults_total", **{"class": of, "outcome": outcome})
                self.assertEqual(faults, 0, (of, outcome))
        for fence in ("xid", "exit", "hand_over", "earlier"):
            self.assertEqual(text_format.value_of(families, "firebreak_promotions_total", fence=fence), 0)
        for known in ("true", "false"):
            self.assertEqual(text_format.value_of(families, "firebreak_fault_culprit_total", known=known), 0)
        count = "firebreak_promotion_duration_seconds_count"
        self.assertEqual(families["firebreak_promotion_duration_seconds"].samples[count, ()], 0)
        for domain in "ab":
            self.assertEqual(
                text_format.value_of(families, "firebreak_domain_restarts_total", domain=domain, what="server"), 0)
        self.assertEqual(text_format.value_of(families, "firebreak_agent_starts_total"), 1)
        self.assertEqual(text_format.value_of(families, "firebreak_held_processes"), 0)
        self.assertEqual(text_format.value_of(families, "firebreak_up"), 1)

    def test_a_fault_is_counted_once_and_by_the_next_agents_too(self) -> None:
        self.run_pair()
        self.until_value(1, "firebreak_tenant_protected", tenant="llm")
        self.assertGreater(self.value("firebreak_vault_bytes", tenant="llm") or 0, 0)
        self.fault()
        self.until_value(1, "firebreak_faults_total", **{"class": "sm", "outcome": "failed_over"})
        self.until_value(1, "firebreak_tenant_protected", tenant="llm")

        def what_counts(families: dict[str, text_format.Family]) -> dict[str, Any]:
            return {name: families[name].samples for name in ("firebreak_faults_total", "firebreak_promotions_total",
                    "firebreak_fault_culprit_total", "firebreak_promotion_duration_seconds")}

        before = what_counts(self.scrape())
        past = self.incidents()
        self.assertEqual([(each["class"], each["outcome"]) for each in past], [("sm", "failed_over")])
        self.assertEqual(sum(before["firebreak_faults_total"].values()), 1)
        self.assertEqual(sum(before["firebreak_promotions_total"].values()), 1)
        self.assertEqual(sum(before["firebreak_fault_culprit_total"].values()), 1)
        self.assertEqual(before["firebreak_promotion_duration_seconds"][
            "firebreak_promotion_duration_seconds_count", ()], 1)
        for number, ends_it in enumerate((signal.SIGTERM, signal.SIGKILL)):
            children = pathlib.Path(f"/proc/{self.agent.pid}/task/{self.agent.pid}/children").read_text().split()
            commands = {int(pid): pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in children}
            agent = next(pid for pid, words in commands.items()
                         if "--directory" in words and "--second-supervisor" not in words)
            os.kill(agent, ends_it)
            self.until_value(2 + number, "firebreak_agent_starts_total")
            self.assertEqual(what_counts(self.scrape()), before)
            self.assertEqual(self.incidents(), past)

    def test_without_an_agent_it_goes_on_and_says_so_once(self) -> None:
        self.assertEqual(self.value("firebreak_up"), 1)
        self.end(self.agent)
        for _ in range(3):
            families = self.scrape()
            self.assertEqual(text_format.value_of(families, "firebreak_up"), 0)
            self.assertEqual([name for name in families if name.startswith("firebreak_")], ["firebreak_up"])
        self.agent = self.start([str(PROGRAMS / "firebreakd"), "--directory", str(self.folder / "d")])
        self.until_value(1, "firebreak_up")
        lines = self.lines()
        self.assertEqual(len(lines), 3, lines)
        self.assertIn("the agent answers", lines[0])
        self.assertIn("no firebreak agent at", lines[1])
        self.assertEqual(lines[2], lines[0])

    def test_it_ends_when_it_is_told_to(self) -> None:
        self.exporter.send_signal(signal.SIGTERM)
        self.assertEqual(self.exporter.wait(PATIENCE_S), 0)

    def test_a_place_that_is_taken_is_told_in_one_line(self) -> None:
        taken = re.search(r"127\.0\.0\.1:\d+", self.url)
        assert taken
        again = subprocess.run([str(PROGRAMS / "firebreak-exporter"), "--listen", taken[0]], env=self.environment,
                               capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(again.returncode, 1)
        self.assertEqual(again.stderr.count("\n"), 1, again.stderr)
        self.assertIn(f"cannot listen at {taken[0]}", again.stderr)


@unittest.skipUnless(program("prometheus") and program("promtool"), "there is no Prometheus")
class Prometheus(ExporterTest):
    def setUp(self) -> None:
        super().setUp()
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        target = self.url.removeprefix("http://").removesuffix("/metrics")
        scrape = (PACKAGING / "scrape.yml").read_text(encoding="utf-8").replace("127.0.0.1:9757", target)
        self.assertIn(target, scrape)
        configuration = self.folder / "prometheus.yml"
        configuration.write_text("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
                                 f"rule_files: [{PACKAGING}/alerts.yml]\n{scrape}", encoding="utf-8")
        self.promtool("check", "config", str(configuration))
        with open(self.folder / "prometheus.log", "w", encoding="utf-8") as log:
            self.start([str(program("prometheus")), f"--config.file={configuration}",
                        f"--storage.tsdb.path={self.folder}/tsdb", f"--web.listen-address=127.0.0.1:{self.port}"],
                       stdout=log, stderr=log)
        self.until("Prometheus has scraped", lambda: self.query("firebreak_up == 1") != [])

    def promtool(self, *arguments: str, text: str | None = None) -> str:
        done = subprocess.run([str(program("promtool")), *arguments], input=text, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def query(self, expression: str) -> list[dict[str, Any]]:
        """[]: no data, or Prometheus does not answer yet."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            answer = json.loads(fetch(url)[0])
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
            return []
        self.assertEqual(answer["status"], "success", expression)
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def test_what_it_serves_lints_and_is_scraped_from_the_first_zero_on(self) -> None:
        ours = "".join(block for block in re.split(r"(?=^# HELP )", fetch(self.url)[0], flags=re.M)
                       if block.startswith("# HELP firebreak_"))
        self.assertEqual(self.promtool("check", "metrics", text=ours), "")
        zeros = self.query("firebreak_faults_total == 0")
        self.assertEqual(len(zeros), len(CLASSES) * len(OUTCOMES))

    def test_each_query_of_the_dashboard_has_data_after_a_fault(self) -> None:
        self.run_pair()
        self.until("protected", lambda: self.query('firebreak_tenant_protected{tenant="llm"} == 1') != [])
        self.fault()
        failed_over = 'firebreak_faults_total{class="sm",outcome="failed_over"} == 1'
        self.until("the fault", lambda: self.query(failed_over) != [])
        dashboard = json.loads((PACKAGING / "dashboard.json").read_text(encoding="utf-8"))
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreater(len(queries), 10)
        for query in queries:
            expression = query.replace("$instance", ".*")

            def has_data(expression: str = expression) -> bool:
                return any(row["value"][1] != "NaN" for row in self.query(expression))

            self.until(query, has_data)
        rules = json.loads(fetch(f"http://127.0.0.1:{self.port}/api/v1/rules")[0])["data"]["groups"][0]["rules"]
        self.assertEqual([(rule["name"], rule["health"]) for rule in rules],
                         [(name, "ok") for name in ("AgentDown", "DomainNotServing", "TenantUnprotected", "FaultBurst")])

    def test_alerts_fire_when_they_are_to(self) -> None:
        rules = pathlib.Path(__file__).with_name("alerts_test.yml").read_text(encoding="utf-8")
        with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
            file.write(rules.replace("ALERTS", str(PACKAGING / "alerts.yml")))
            file.flush()
            self.promtool("test", "rules", file.name)


if __name__ == "__main__":
    unittest.main()
