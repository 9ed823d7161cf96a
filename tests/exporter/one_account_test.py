# SPDX-License-Identifier: Apache-2.0
"""A fault has one account: the agent's list, its log, the reports of exceptions, what follows the list, and metrics
have the same id, culprit and moment. A real agent on the software GPU, whose domains are parked."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import unittest
from typing import Any

import exporter_test
from soft_gpu import PATIENCE_S, PROGRAMS

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class OneAccount(exporter_test.ExporterTest):
    agent_options = ["--supervised", "--park-s", "60"]

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        if command[0].endswith("/firebreakd"):
            self.log = self.folder / "agent.log"
            options["stderr"] = self.enterContext(open(self.log, "w", encoding="utf-8"))
        return super().start(command, **options)

    def firebreak(self, *words: str) -> str:
        done = subprocess.run([str(PROGRAMS / "firebreak"), *words, "--socket", self.socket], env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def faults(self) -> list[dict[str, Any]]:
        faults: list[dict[str, Any]] = json.loads(self.firebreak("faults", "--json"))
        return faults

    def follow(self, *words: str) -> tuple[subprocess.Popen[str], Any]:
        said = self.folder / "-".join(words)
        with open(said, "w", encoding="utf-8") as file:
            process = self.start([str(PROGRAMS / "firebreak"), *words, "--socket", self.socket], stdout=file)
        return process, said

    def fault_of(self, name: str, kind: str) -> dict[str, Any]:
        """By a tenant of that name, beside one that goes on."""
        self.until("its domain", lambda: all(domain["state"] == "serving" and domain["parking"]["state"] == "ready"
                                             for domain in self.domains()))
        before, there = len(self.faults()), self.domain_of_llm()
        subprocess.run([str(PROGRAMS / "firebreak"), "run", "--socket", self.socket, "--name", name, "--",
                        str(PROGRAMS / "firebreak-lab"), "inject", kind], env=self.environment, timeout=PATIENCE_S,
                       check=False, capture_output=True)
        self.until(f"the account of {kind}", lambda: len(self.faults()) > before)
        faults = self.faults()
        self.assertEqual(len(faults), before + 1)
        if faults[-1]["domain"] == there:  # elsewhere only its standby may be
            self.assertIn("llm", [each["tenant"] for each in faults[-1]["touched"]], faults[-1])
        return faults[-1]

    def domain_of_llm(self) -> str:
        tenants = json.loads(self.firebreak("status", "--json"))["tenants"]
        domain: str = next(tenant["active"]["domain"] for tenant in tenants if tenant["name"] == "llm")
        return domain

    def domains(self) -> list[dict[str, Any]]:
        domains: list[dict[str, Any]] = json.loads(self.firebreak("status", "--json"))["domains"]
        return domains

    def test_everybody_says_the_same_of_two_faults(self) -> None:
        follower, followed = self.follow("faults", "--follow")
        watcher, watched = self.follow("watch", "--all", "--json")
        self.until("who follows", lambda: followed.read_text().startswith("ID "))
        self.run_pair()
        first = self.fault_of("rogue", "misaligned-load")
        second = self.fault_of("villain", "trap")
        self.assertNotEqual(first["id"], second["id"])
        self.until("those who follow", lambda: len(followed.read_text().splitlines()) == 3
                   and len(watched.read_text().splitlines()) == 2)
        for line, fault in zip(watched.read_text().splitlines(), (first, second)):
            told = json.loads(line)
            for name in ("id", "at", "class", "outcome", "domain", "culprit", "what", "touched", "reports"):
                self.assertEqual(told[name], fault[name], name)
        listed = self.firebreak("faults")
        self.assertEqual(followed.read_text(), listed)
        self.assertEqual(self.firebreak("incidents"), listed)
        log = self.log.read_text(encoding="utf-8")
        for culprit, fault in (("rogue", first), ("villain", second)):
            self.assertRegex(fault["id"], r"^[0-9a-z]{7}$")
            self.assertRegex(fault["at"], MOMENT)
            self.assertEqual(fault["culprit"], culprit)
            line = next(each for each in listed.splitlines() if each.startswith(fault["id"]))
            for word in (fault["at"], culprit, fault["outcome"]):
                self.assertIn(f" {word} ", line)
            self.assertIn(f"fault {fault['id']} at {fault['at']}: {fault['class']}", log)
            self.assertIn(f"{fault['outcome']}; culprit {culprit}", log)
            self.expect_account(fault, self.firebreak("faults", "show", fault["id"]))
        self.assertIn({"tenant": "llm", "became": "its standby goes on"}, first["touched"])
        self.assertEqual({first["id"], second["id"]}, set(re.findall(r"\bincident ([0-9a-z]{7})\b", log)))
        labels = {name: second[name] for name in ("id", "at", "class", "outcome", "domain", "culprit")}
        self.assertEqual(self.value("firebreak_last_fault_info", **labels), 1)
        self.assertEqual(len(self.scrape()["firebreak_last_fault_info"].samples), 1)
        for process in (follower, watcher):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), 0)

    def expect_account(self, fault: dict[str, Any], told: str) -> None:
        """Of the fault, and of its exception in the same words."""
        self.assertTrue(told.startswith(f"fault {fault['id']}\n  when         {fault['at']}\n"), told)
        self.assertEqual(len(fault["reports"]), 1, fault)
        self.assertIn(f"\n{fault['reports'][0]}\n", told)
        self.assertIn(f"  fault      {fault['id']}\n", told)
        self.assertEqual(set(MOMENT.findall(told)), {fault["at"]})
        for each in fault["touched"]:
            self.assertEqual(told.count(f"{each['tenant']}: {each['became']}\n"), 2, told)
        self.assertEqual(self.firebreak("report", fault["reports"][0]), told[told.index(fault["reports"][0] + "\n"):])
        self.assertIn("target cudacore", told)

    def test_what_is_not_there_is_said(self) -> None:
        for words, says in ((["show", "1234567"], "there is no fault '1234567'"), (["show"], "which fault?"),
                            (["shew", "1234567"], "shew")):
            done = subprocess.run([str(PROGRAMS / "firebreak"), "faults", *words, "--socket", self.socket],
                                  env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.firebreak("faults"), "no faults\n")


if __name__ == "__main__":
    unittest.main()
