#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the machine that packaging/booted/run.sh boots, as root: one line for each check, and the exit status says
whether all hold. What `--break` can take away, and what fails then, stands in BREAKS."""

import datetime
import glob
import json
import os
import pathlib
import platform
import socket
import subprocess
import sys
import time
import urllib.request

SHARE = pathlib.Path("/booted")
OPTIONS = json.loads((SHARE / "options.json").read_text())
BROKEN = OPTIONS["broken"]
UNIT = "firebreakd.service"
EXPORTER = "firebreak-exporter.service"
K8S = "firebreak-k8s.service"
NRI = "firebreak-nri.service"
RUNTIME_SOCKET = pathlib.Path("/var/run/nri/nri.sock")
KUBELET_FOLDER = pathlib.Path("/var/lib/kubelet/device-plugins")
DROP_IN = pathlib.Path("/etc/systemd/system/firebreakd.service.d/software.conf")
STEPS = 600
LIMIT_S = 60  # for whatever is waited for
BREAKS = {
    "": "nothing",
    "wait": "the installation waits for the agent: it does not end without a GPU",
    "store": "systemd keeps no descriptors: whatever replaces the agent loses the pair",
    "group": "the agent has no group of tenants: no user has one",
    "observers": "the agent has no group of observers: the exporter is told nothing",
    "kubelet": "the unit of firebreak-k8s cannot reach the kubelet's folder: it never registers",
    "bus": "the agent cannot reach systemd: daemons and parking clients are its children, killed with the unit",
    "runtime": "the unit of firebreak-nri cannot reach the runtime's folder: it never registers",
    "output": "the undisturbed run is another one: the output differs",
    "policy": "policy-rc.d forbids restarts: an upgrade leaves the old agent",
    "prerm": "the removal asks nobody: it ends the tenant",
    "postrm": "the purge does nothing: something is left behind",
}


class Failed(Exception):
    pass


def expect(holds, why):
    if not holds:
        raise Failed(why)


def run(*command, user=None, limit_s=LIMIT_S):
    try:
        done = subprocess.run(as_user(user, command), capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done within {limit_s} s") from None
    return done


def must(*command, **how):
    done = run(*command, **how)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.returncode}: {(done.stdout + done.stderr).strip()[-600:]}")
    return done.stdout.strip()


def as_user(user, command):
    if user is None:
        return list(command)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--", *command]


def wait_for(what, holds, why=lambda: ""):
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"not within {LIMIT_S} s: {what} {why()}")
        time.sleep(0.1)


def property_of(name):
    return must("systemctl", "show", "--value", f"--property={name}", UNIT)


def packages(folder):
    return sorted(str(path) for path in (SHARE / folder).glob("*.deb"))


def names():
    return [must("dpkg-deb", "--field", path, "Package") for path in packages("packages")]


def files():
    """All but what any package leaves: logs, dpkg's and apt's own, what the kernel and systemd show."""
    others = ("/proc", "/sys", "/dev", "/booted", "/var/log", "/var/lib/dpkg", "/var/lib/apt", "/var/cache", "/run/systemd",
              "/run/udev", "/run/log", "/run/credentials", "/run/dbus", "/etc/ld.so.cache", "/home", "/etc/group-",
              "/etc/gshadow-", "/etc/passwd-", "/etc/shadow-", "/run/agetty.reload")
    found = set()
    for folder, inner, plain in os.walk("/"):
        inner[:] = [name for name in inner if os.path.join(folder, name) not in others]
        for name in [*inner, *plain]:
            path = os.path.join(folder, name)
            if path not in others:
                found.add(path)
    return found


def processes():
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            command = pathlib.Path(folder, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        program = command.split(" ")[0]
        if "firebreak" in program or "nvidia-cuda-mps" in program:
            found.append(f"{folder[6:]} {command.strip()}")
    return found


class Pair:
    """A user's tenant with its standby, at work until it is told to end."""

    name = "llm"

    def __init__(self):
        self.user, self.home = "tenant", pathlib.Path("/home/tenant")
        self.process = None

    def start(self):
        command = ["firebreak", "run", "--pair", "--name", self.name, "--", "firebreak-decode", "--steps", str(STEPS),
                   "--pace-ms", "400", "--slow-until", str(self.home / "go"), "--output", str(self.home / "tokens")]
        with open(SHARE / "pair.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(as_user(self.user, command), stdout=log, stderr=log, cwd=self.home)
        wait_for("the pair is protected", self.is_protected, self.told)

    def told(self):
        return (SHARE / "pair.log").read_text()[-300:] + json.dumps(self.status())

    def status(self):
        told = run("firebreak", "status", "--json")
        if told.returncode != 0:
            return {}
        return next((tenant for tenant in json.loads(told.stdout)["tenants"] if tenant["name"] == self.name), {})

    def is_protected(self):
        now = self.status()
        return now.get("phase") == "serving" and now.get("standby_state") == "ready"

    def steps(self):
        return self.status().get("committed_steps", -1)

    def same_after(self, what):
        """Nobody was promoted or started anew by it, and the work goes on."""
        before = self.status()
        expect(before.get("standby_state") == "ready", f"no pair before it: {json.dumps(before)}")
        what()
        wait_for("the pair is protected", self.is_protected, lambda: json.dumps(self.status()))
        after = self.status()
        for key in ("epoch", "active", "standby"):
            was, is_now = ({k: v for k, v in of[key].items() if k in ("pid", "domain")} if isinstance(of[key], dict)
                           else of[key] for of in (before, after))
            expect(was == is_now, f"{key}: {was} before, {is_now} after")
        wait_for("it computes on", lambda: self.steps() >= before["committed_steps"] + 2)


def agent_replaced_by(action):
    def act():
        before = property_of("MainPID")
        action()
        wait_for("another agent", lambda: property_of("MainPID") not in ("0", before)
                 and property_of("ActiveState") == "active", lambda: property_of("StatusText"))
    return act


def set_up():
    for user in ("tenant", "stranger"):
        must("useradd", "--create-home", user)
    if BROKEN == "wait":
        wrapper = pathlib.Path("/usr/bin/systemctl")
        wrapper.rename("/usr/bin/systemctl.real")
        wrapper.write_text('#!/bin/sh\nfor a; do shift; [ "$a" = --no-block ] || set -- "$@" "$a"; done\n'
                           'exec /usr/bin/systemctl.real "$@"\n')
        wrapper.chmod(0o755)


def installs_without_a_gpu():
    must("apt-get", "install", "-y", "--no-install-recommends", *packages("packages"), limit_s=120)
    wait_for("it waits for a GPU", lambda: "waiting for a GPU" in property_of("StatusText"),
             lambda: property_of("StatusText"))
    expect(property_of("ActiveState") == "activating", property_of("ActiveState"))
    expect(must("systemctl", "is-enabled", UNIT) == "enabled", "not enabled")


def starts_on_the_software_gpu():
    unit = pathlib.Path(property_of("FragmentPath")).read_text(encoding="utf-8").replace("\\\n", "")
    start = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    start = start.replace("--gpu-kind real", "--gpu-kind soft")
    if BROKEN == "group":
        start = start.replace("--tenant-group firebreak ", "")
    if BROKEN == "observers":
        start = start.replace("--observer-group firebreak-observer", "")
    DROP_IN.parent.mkdir()
    # A folder that lets others through is a software GPU of every user's.
    start = f"ExecStartPre=/usr/bin/install -d -m 711 /run/firebreak/softgpu\nExecStart=\n{start}\n"
    more = {"store": "FileDescriptorStoreMax=0\n", "bus": "InaccessiblePaths=/run/dbus /run/systemd/private\n"}
    DROP_IN.write_text("[Service]\n" + start + more.get(BROKEN, ""))
    must("systemctl", "daemon-reload")
    must("systemctl", "restart", UNIT)
    expect(property_of("ActiveState") == "active", property_of("ActiveState"))


def only_members_of_the_group_are_tenants():
    must("usermod", "--append", "--groups", "firebreak", "tenant")
    must("firebreak", "status", user="tenant")
    expect(run("firebreak", "status", user="stranger").returncode != 0, "a stranger is answered")


def computes_undisturbed():
    library = "LD_LIBRARY_PATH=/usr/lib/softgpu"
    must("env", library, "FIREBREAK_SOFTGPU_DIR=/tmp/alone", "firebreak-decode", "--standalone", "--steps", str(STEPS),
         "--output", "/tmp/alone.tokens", "--seed", "2" if BROKEN == "output" else "1", limit_s=120)


def metrics():
    with urllib.request.urlopen("http://127.0.0.1:9757/metrics", timeout=LIMIT_S) as answer:
        return answer.read().decode()


def exporter_serves(pair):
    """As a user that sees all tenants, and may do nothing."""
    expect("\nfirebreak_up 1\n" in metrics(), metrics()[:300])
    expect(f'\nfirebreak_tenant_protected{{tenant="{pair.name}"}} 1\n' in metrics(), metrics()[-600:])
    expect(must("systemctl", "show", "--value", "--property=DynamicUser", EXPORTER) == "yes", "its user stays")
    user = must("ps", "-o", "user=", "-C", "firebreak-expor")
    expect(user not in ("root", ""), f"it runs as {user}")
    socket = "--socket=/run/firebreak/status.sock"
    refused = run("setpriv", "--reuid=stranger", "--regid=firebreak-observer", "--clear-groups", "--",
                  "firebreak", "stop", socket, pair.name)
    expect(refused.returncode != 0 and "for the status alone" in refused.stderr, refused.stderr[-300:])
    expect(run("firebreak", "status", socket, user="stranger").returncode != 0, "a stranger is answered")


def limits_of(pid):
    status = pathlib.Path("/proc", pid, "status").read_text(encoding="utf-8")
    return {name: value.strip() for name, value in (line.split(":", 1) for line in status.splitlines())}


def numbers_of(program):
    return [line.split(" ")[0] for line in processes() if program in line]


def are_services_of_their_own(program, service):
    """With nothing of what the agent's unit takes away."""
    numbers = numbers_of(program)
    expect(len(numbers) >= 2, f"{program}: {processes()}")
    agent = property_of("MainPID")
    for pid in numbers:
        cgroup = pathlib.Path("/proc", pid, "cgroup").read_text(encoding="utf-8")
        expect(f"/{service}-" in cgroup and ".service" in cgroup,
               f"{pid} is in {cgroup.splitlines()[-1]}: " + next((line for line in journal_of(UNIT).splitlines()
                                                                  if "a child" in line), "and nobody says why"))
        for limit in ("NoNewPrivs", "Seccomp_filters", "CapBnd"):
            its, of_machine = (limits_of(process)[limit] for process in (pid, "1"))
            expect(its == of_machine, f"{limit} of {pid} is {its}, and {of_machine} of the machine's first process")
        for space in ("net", "mnt"):
            its, of_machine, of_agent = (os.readlink(f"/proc/{process}/ns/{space}") for process in (pid, "1", agent))
            expect(its == of_machine != of_agent, f"{space}: {its} of {pid}, {of_machine} of the machine, {of_agent}")
    expect(limits_of(agent)["NoNewPrivs"] == "1", "nothing binds the agent")


def daemons_are_services_of_their_own():
    are_services_of_their_own("nvidia-cuda-mps-control", "firebreak-mps")


def parking_clients():
    return sorted(numbers_of("firebreak-parking-client"))


def parking_clients_are_services_of_their_own():
    """In an agent that parks. They end with it, however it ends, and the next one has others."""
    plain = DROP_IN.read_text(encoding="utf-8")
    DROP_IN.write_text(plain.replace("--gpu-kind soft", "--gpu-kind soft --park-s 30"), encoding="utf-8")
    must("systemctl", "daemon-reload")
    must("systemctl", "restart", UNIT)

    def can_be_parked():
        told = run("firebreak", "status", "--json")
        domains = json.loads(told.stdout)["domains"] if told.returncode == 0 else []
        return domains and all(domain["parking"]["state"] == "ready" for domain in domains)

    wait_for("both domains can be parked", can_be_parked, lambda: journal_of(UNIT)[-600:])
    are_services_of_their_own("firebreak-parking-client", "firebreak-park")
    before = parking_clients()
    must("systemctl", "kill", "-s", "KILL", "--kill-whom=main", UNIT)
    wait_for("parking clients end with their agent", lambda: not set(before) & set(parking_clients()))
    wait_for("the next agent parks", lambda: len(parking_clients()) == len(before) and can_be_parked(),
             lambda: journal_of(UNIT)[-600:])
    are_services_of_their_own("firebreak-parking-client", "firebreak-park")
    DROP_IN.write_text(plain, encoding="utf-8")
    must("systemctl", "daemon-reload")
    must("systemctl", "restart", UNIT)
    wait_for("nothing is left of them", lambda: not parking_clients())
    units = must("systemctl", "list-units", "--all", "--plain", "--no-legend", "firebreak-park-*")
    expect(not units, f"units: {units}")


class Kubelet:
    """A stand-in (tests/k8s), since the machine has none. It runs until it is ended."""

    def __init__(self):
        self.process = None
        self.log = SHARE / "kubelet.log"

    def start(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([str(SHARE / "kubelet-stand-in"), str(KUBELET_FOLDER)],
                                            stdin=subprocess.PIPE, stdout=log, stderr=log)

    def told(self):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return json.loads(lines[-1]) if lines else {}

    def has(self, registrations, seats):
        now = self.told()
        return now.get("registrations", 0) >= registrations and now["seats"] == seats

    def end(self):
        if self.process is not None:
            self.process.communicate()
            self.process = None


def journal_of(unit):
    return must("journalctl", "--no-pager", "--output=cat", "-u", unit)


def k8s_waits_for_a_kubelet():
    """Installed where there is no kubelet, it is no failed unit."""
    wait_for("it waits", lambda: f"waits for {KUBELET_FOLDER}/kubelet.sock" in journal_of(K8S), lambda: journal_of(K8S))
    expect(must("systemctl", "is-active", K8S) == "active", "not active")
    expect(must("systemctl", "show", "--value", "--property=NRestarts", K8S) == "0", "it was started again")


def k8s_registers(kubelet):
    """And again after it was started anew. A seat is healthy as its domain serves."""
    if BROKEN == "kubelet":
        drop_in = pathlib.Path(f"/run/systemd/system/{K8S}.d")
        drop_in.mkdir(parents=True)
        (drop_in / "broken.conf").write_text("[Service]\nInaccessiblePaths=-/var/lib/kubelet\n")
        KUBELET_FOLDER.mkdir(parents=True)
        must("systemctl", "daemon-reload")
        must("systemctl", "restart", K8S)
    kubelet.start()
    seats = {f"{domain}-{number}": "Healthy" for domain in "ab" for number in range(1, 5)}
    for times in (1, 2):
        wait_for(f"registration {times}", lambda: kubelet.has(times, seats),
                 lambda: json.dumps(kubelet.told()) + journal_of(K8S)[-600:])
        must("systemctl", "restart", K8S)
    capabilities = must("systemctl", "show", "--value", "--property=CapabilityBoundingSet", K8S)
    expect(capabilities == "", f"it has capabilities: {capabilities}")


def nri_waits_for_a_runtime():
    """Whoever wants it enables it. Where there is no runtime it says so once, and is no failed unit."""
    expect(run("systemctl", "is-enabled", NRI).stdout.strip() == "disabled", "it is enabled by the installation")
    expect(run("systemctl", "is-active", NRI).stdout.strip() == "inactive", "it is started by the installation")
    if BROKEN == "runtime":
        drop_in = pathlib.Path(f"/run/systemd/system/{NRI}.d")
        drop_in.mkdir(parents=True)
        (drop_in / "broken.conf").write_text(f"[Service]\nInaccessiblePaths=-{RUNTIME_SOCKET.parent}\n")
        RUNTIME_SOCKET.parent.mkdir(parents=True)
        must("systemctl", "daemon-reload")
    must("systemctl", "enable", "--now", NRI)
    waits = "waits for a runtime: "
    wait_for("it waits", lambda: waits in journal_of(NRI), lambda: journal_of(NRI))
    wait_for("it knows the agent's seats", lambda: "2 of 2 seats are healthy" in journal_of(NRI), lambda: journal_of(NRI))
    time.sleep(2)  # four more tries
    expect(journal_of(NRI).count(waits) == 1, journal_of(NRI))
    expect(must("systemctl", "is-active", NRI) == "active", "not active")
    expect(must("systemctl", "show", "--value", "--property=NRestarts", NRI) == "0", "it was started again")


def nri_registers():
    """With whoever listens where a runtime does, and again when that comes anew."""
    RUNTIME_SOCKET.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(RUNTIME_SOCKET))
            listener.listen()
            listener.settimeout(LIMIT_S)
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(LIMIT_S)
                    told = connection.recv(4096)
            except TimeoutError:
                raise Failed(f"nobody comes within {LIMIT_S} s: {journal_of(NRI)}") from None
            expect(b"RegisterPlugin" in told and b"firebreak" in told, f"{told}")
        RUNTIME_SOCKET.unlink()
    RUNTIME_SOCKET.parent.rmdir()


def restarts_in_a_loop(pair):
    for _ in range(OPTIONS["restarts"]):
        pair.same_after(agent_replaced_by(lambda: must("systemctl", "restart", UNIT)))


def installed_version():
    return must("dpkg-query", "--show", "--showformat=${Version}", "firebreak")


def install_by_dpkg(folder):
    if BROKEN == "policy":
        policy = pathlib.Path("/usr/sbin/policy-rc.d")
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    must("dpkg", "--install", *packages(folder), limit_s=120)


def upgrades(pair):
    before = installed_version()
    pair.same_after(agent_replaced_by(lambda: install_by_dpkg("newer")))
    expect(installed_version() == before + "+newer", f"{installed_version()} after {before}")


def downgrades(pair):
    pair.same_after(agent_replaced_by(lambda: install_by_dpkg("packages")))


def does_not_remove_itself_under_a_tenant(pair):
    if BROKEN == "prerm":
        pathlib.Path("/var/lib/dpkg/info/firebreak.prerm").write_text("#!/bin/sh\nsystemctl stop 'firebreak*'\n")
    refused = run("dpkg", "--force-depends", "--remove", "firebreak")
    expect(refused.returncode != 0, "the package was removed")
    expect(pair.name in refused.stdout + refused.stderr, f"nobody named the tenant: {refused.stderr[-300:]}")
    pair.same_after(lambda: None)


def survives_a_fault(pair):
    before = pair.status()
    told = run("firebreak", "run", "--name", "rogue", "--", "firebreak-lab", "inject", "misaligned-load", user=pair.user)
    wait_for("the standby has taken over", lambda: pair.status().get("epoch", 0) > before["epoch"],
             lambda: told.stdout[-200:] + told.stderr[-200:] + json.dumps(pair.status()))
    wait_for("the pair is protected again", pair.is_protected, lambda: json.dumps(pair.status()))


def ends_with_the_same_output(pair):
    (pair.home / "go").touch()
    try:
        status = pair.process.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed("the pair does not end: " + pair.told()) from None
    expect(status == 0, f"the pair ended with {status}: {pair.told()}")
    same = (pair.home / "tokens").read_bytes() == pathlib.Path("/tmp/alone.tokens").read_bytes()
    expect(same, "the output is another one")


def purges(before, kubelet):
    # A user keeps what its last look at the GPU found, and its own software GPU.
    users = [str(path) for path in pathlib.Path("/tmp").iterdir() if path.owner() == "tenant"]
    for path in ("/tmp/alone", "/tmp/alone.tokens", *users):
        must("rm", "-rf", path)
    must("rm", "-rf", str(DROP_IN.parent), "/usr/sbin/policy-rc.d")
    if BROKEN == "postrm":
        pathlib.Path("/var/lib/dpkg/info/firebreak.postrm").write_text("#!/bin/sh\n")
    must("apt-get", "purge", "-y", *names(), limit_s=120)
    must("systemctl", "daemon-reload")
    expect(not (KUBELET_FOLDER / "firebreak.sock").exists(), "the plugin's socket is left in the kubelet's folder")
    kubelet.end()
    must("rm", "-rf", "/var/lib/kubelet")
    expect(not processes(), f"processes: {processes()}")
    units = must("systemctl", "list-units", "--all", "--plain", "--no-legend", "firebreak*")
    expect(not units, f"units: {units}")
    left = sorted(files() - before)
    expect(not left, f"files: {' '.join(left[:10])}")


def every_check():
    before = files()
    pair, kubelet = Pair(), Kubelet()
    yield "installs where there is no GPU, and waits for one", installs_without_a_gpu
    yield "starts on the software GPU", starts_on_the_software_gpu
    yield "only members of the group firebreak are tenants", only_members_of_the_group_are_tenants
    yield "firebreak-k8s waits where there is no kubelet", k8s_waits_for_a_kubelet
    yield "parking clients are services of their own, and end with it", parking_clients_are_services_of_their_own
    yield "a program computes undisturbed", computes_undisturbed
    yield "a user's pair is protected", pair.start
    yield "MPS daemons are services of their own, and nothing of the agent's binds them", daemons_are_services_of_their_own
    yield "the exporter serves what the agent says, and may do nothing", lambda: exporter_serves(pair)
    yield "firebreak-k8s registers its seats with a kubelet (a stand-in)", lambda: k8s_registers(kubelet)
    yield "firebreak-nri, once it is enabled, waits where there is no runtime", nri_waits_for_a_runtime
    yield "and registers with one (a stand-in)", nri_registers

    def after(action):
        return lambda: pair.same_after(agent_replaced_by(action))

    yield "the pair notices nothing of systemctl restart", after(lambda: must("systemctl", "restart", UNIT))
    yield "nor of systemctl kill -s KILL", after(lambda: must("systemctl", "kill", "-s", "KILL", UNIT))
    yield "nor of an agent that hangs, which the watchdog ends", after(
        lambda: must("systemctl", "kill", "-s", "STOP", "--kill-whom=main", UNIT))
    yield "nor of an upgrade", lambda: upgrades(pair)
    yield "nor of a downgrade", lambda: downgrades(pair)
    yield f"nor of {OPTIONS['restarts']} restarts", lambda: restarts_in_a_loop(pair)
    yield "the package is not removed while a tenant is there", lambda: does_not_remove_itself_under_a_tenant(pair)
    yield "a fault after all that is survived by the standby", lambda: survives_a_fault(pair)
    yield "the output is that of the undisturbed run", lambda: ends_with_the_same_output(pair)
    yield "a purge leaves no process, no unit and no file", lambda: purges(before, kubelet)


def versions():
    return {
        "firebreak": must("dpkg-deb", "--field", packages("packages")[0], "Version"),
        "debian": pathlib.Path("/etc/debian_version").read_text(encoding="ascii").strip(),
        "systemd": must("systemctl", "--version").split()[1],
        "kernel": platform.release(),
    }


def main():
    if BROKEN not in BREAKS:
        sys.exit(f"no such thing to break: {BROKEN}; there are {', '.join(filter(None, BREAKS))}")
    set_up()
    rows = []
    for title, check in every_check():
        why = None
        try:
            check()
        except (Failed, OSError, KeyError) as failed:
            why = f"{type(failed).__name__}: {failed}" if not isinstance(failed, Failed) else str(failed)
        print(f"holds  {title}" if why is None else f"FAILS  {title}: {why}", flush=True)
        rows.append({"check": title, "holds": why is None} | ({"why": why} if why else {}))
        if why and len(rows) == 1:
            print("the others were not tried", flush=True)
            break
    told = {
        "what": "the Debian packages on a booted Debian 12 in a container, with a pair at work",
        "device": "Firebreak Software GPU",
        "date": datetime.date.today().isoformat(),
        "commit": OPTIONS["commit"],
        "command": f"./dev booted --restarts {OPTIONS['restarts']}" + (f" --break {BROKEN}" if BROKEN else ""),
        "versions": versions(),
        "checks": rows,
    }
    (SHARE / "booted.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (SHARE / "journal").write_text(run("journalctl", "--no-pager", "-u", UNIT, "-u", K8S, "-u", NRI).stdout, encoding="utf-8")
    sys.exit(0 if all(row["holds"] for row in rows) else 1)


main()
