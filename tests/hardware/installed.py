#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages on a booted Debian 12 with a GPU: installed, a pair and a guarded tenant at work, the unit restarted in
the middle of it, a fault after that, a stray, and the same output as without all that. For a machine that may be
changed, with systemd and root.

    tests/hardware/installed.py PACKAGES RESULT.json [--soft]

PACKAGES: a folder with firebreak, libfirebreak0, firebreak-preload and firebreak-lab as .deb. --soft: on the software
GPU. Each check is in RESULT.json with what held it up. Ends the tenants that it started. Exit 1 where one does not
hold."""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

UNIT, STEPS, LIMIT_S = "firebreakd.service", 400, 60
WORK = pathlib.Path("/tmp/installed")


class Failed(Exception):
    pass


def run(*command, limit_s=LIMIT_S):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done within {limit_s} s") from None


def must(*command, **how):
    done = run(*command, **how)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout.strip()


def expect(holds, why):
    if not holds:
        raise Failed(why)


def wait_for(what, holds, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"not within {limit_s} s: {what}: {json.dumps(status())[-600:]} {journal()[-600:]}")
        time.sleep(0.05)


def journal():
    return run("journalctl", "--no-pager", "-u", UNIT, "-o", "cat").stdout


def property_of(name):
    return must("systemctl", "show", "--value", f"--property={name}", UNIT)


def status():
    told = run("firebreak", "status", "--json")
    return json.loads(told.stdout) if told.returncode == 0 else {"tenants": [], "domains": []}


def tenant(name):
    return next((each for each in status()["tenants"] if each["name"] == name), {})


def start(name, *command):
    out = open(WORK / f"{name}.log", "w", encoding="utf-8")
    return subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)


def said(name):
    return (WORK / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def pair_is_protected():
    now = tenant("llm")
    return now.get("phase") == "serving" and now.get("standby_state") == "ready"


class Machine:
    def __init__(self, packages, soft):
        self.packages, self.soft, self.started = packages, soft, []

    def installs(self):
        must("dpkg", "-i", *sorted(str(each) for each in self.packages.glob("*.deb")), limit_s=120)
        expect(must("systemctl", "is-enabled", UNIT) == "enabled", "not enabled")

    def parks_and_gives_spares(self):
        pathlib.Path("/etc/firebreak/firebreakd.toml").write_text("park-s = 30\nspares = true\n", encoding="utf-8")
        if self.soft:
            unit = pathlib.Path(property_of("FragmentPath")).read_text(encoding="utf-8").replace("\\\n", "")
            line = next(each for each in unit.splitlines() if each.startswith("ExecStart="))
            folder = pathlib.Path("/etc/systemd/system/firebreakd.service.d")
            folder.mkdir(exist_ok=True)
            line = line.replace("real", "soft")
            (folder / "soft.conf").write_text(f"[Service]\nExecStart=\n{line}\n", encoding="utf-8")
            must("systemctl", "daemon-reload")
        must("systemctl", "restart", UNIT)
        ready = lambda: [each["parking"]["state"] for each in status()["domains"]] == ["ready", "ready"]
        wait_for("both domains can be parked", ready)

    def computes_undisturbed(self):
        more = ["env", "LD_LIBRARY_PATH=/usr/lib/softgpu", "FIREBREAK_SOFTGPU_DIR=/tmp/alone"] if self.soft else []
        must(*more, "firebreak-decode", "--standalone", "--steps", str(STEPS), "--output", str(WORK / "alone.tokens"))

    def tenants_are_protected(self):
        self.started.append(start(
            "llm", "firebreak", "run", "--pair", "--name", "llm", "--", "firebreak-decode", "--steps", str(STEPS),
            "--pace-ms", "300", "--slow-until", str(WORK / "go"), "--output", str(WORK / "tokens")))
        self.started.append(start("strayer", "firebreak", "run", "--name", "strayer", "--", "firebreak-checker",
                                  "--until", str(WORK / "stray"), "--stray-gib", "16"))
        wait_for("the pair is protected", pair_is_protected)
        wait_for("the other is guarded", lambda: (tenant("strayer").get("guard") or {}).get("state") == "on")
        wait_for("and has a spare", lambda: (tenant("strayer").get("spare") or {}).get("state") == "protected")

    def outlive_a_restart_of_the_unit(self):
        before, agent = {name: tenant(name) for name in ("llm", "strayer")}, property_of("MainPID")
        must("systemctl", "restart", UNIT)
        expect(property_of("MainPID") != agent, "the same agent")
        wait_for("the pair is protected", pair_is_protected)
        for name, was in before.items():
            expect(tenant(name)["active"]["pid"] == was["active"]["pid"], f"{name} is another process")
        wanted = before["llm"]["committed_steps"] + 2
        wait_for("it computes on", lambda: tenant("llm").get("committed_steps", 0) >= wanted)
        ready = lambda: [each["parking"]["state"] for each in status()["domains"]] == ["ready", "ready"]
        wait_for("both domains can be parked", ready)

    def outlive_a_fault_after_that(self):
        before = {name: tenant(name)["active"] for name in ("llm", "strayer")}
        expect(before["llm"]["domain"] == before["strayer"]["domain"] == "a", json.dumps(before))
        self.started.append(start("rogue", "firebreak", "run", "--name", "rogue", "--without", "guard,spare", "--",
                                  "firebreak-lab", "inject", "misaligned-load"))
        moved = lambda name: (tenant(name).get("active") or {}).get("domain") == "b"
        wait_for("the pair goes on in its standby", lambda: moved("llm"))
        wait_for("the other in the same process", lambda: moved("strayer"))
        expect(tenant("strayer")["active"]["pid"] == before["strayer"]["pid"], "it is another process")

    def contains_a_stray(self):
        (WORK / "stray").touch()
        wait_for("the stray is told", lambda: "contained stray of tenant strayer" in journal())
        expect(tenant("llm").get("active"), "the pair is gone")

    def computes_the_same(self):
        (WORK / "go").touch()
        expect(self.started[0].wait(LIMIT_S) == 0, said("llm")[-300:])
        same = (WORK / "tokens").read_bytes() == (WORK / "alone.tokens").read_bytes()
        expect(same, "the output differs")

    def services_are_their_own(self):
        units = must("systemctl", "list-units", "--plain", "--no-legend", "firebreak-*")
        for kind in ("firebreak-mps-", "firebreak-park-"):
            expect(units.count(kind) >= 2, f"{kind}: {units}")

    def end(self):
        for each in self.started:
            if each.poll() is None:
                each.terminate()
        run("firebreak", "shutdown")


def main():
    packages, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    WORK.mkdir(parents=True, exist_ok=True)
    machine = Machine(packages, "--soft" in sys.argv[3:])
    checks = [machine.installs, machine.parks_and_gives_spares, machine.computes_undisturbed,
              machine.tenants_are_protected, machine.services_are_their_own, machine.outlive_a_restart_of_the_unit,
              machine.outlive_a_fault_after_that, machine.contains_a_stray, machine.computes_the_same]
    seen = []
    for check in checks:
        row = {"check": check.__name__.replace("_", " ")}
        begin = time.monotonic()
        try:
            check()
            row["holds"] = True
        except (Failed, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as wrong:
            row.update(holds=False, why=str(wrong)[-1500:])
        row["took_s"] = round(time.monotonic() - begin, 1)
        seen.append(row)
        print(json.dumps(row), flush=True)
    told = status()
    machine.end()
    asked = [] if machine.soft else ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = run(*asked).stdout.strip() if asked else ""
    result = {"what": "tests/hardware/installed.py", "format": 1,
              "machine": {"gpu": gpu or "Firebreak Software GPU", "linux": os.uname().release,
                          "version": must("dpkg-query", "-W", "-f", "${Version}", "firebreak"),
                          "commit": os.environ.get("FIREBREAK_COMMIT", "unknown"),
                          "date": datetime.date.today().isoformat()},
              "guard_test": told.get("guard_test"), "spare_test": told.get("spare_test"), "checks": seen}
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (output.parent / "journal.txt").write_text(journal(), encoding="utf-8")
    return 0 if all(row["holds"] for row in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
