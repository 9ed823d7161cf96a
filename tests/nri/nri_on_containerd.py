#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nri_on_containerd.py PROGRAMS ROOT.tar RESULT.json: firebreak-nri under a real containerd, as root, in 30 s.

ROOT.tar is a root file system with containerd, runc and busybox-static, as mmdebstrap makes one:
  mmdebstrap --variant=minbase --include=containerd,runc,busybox-static,iproute2 trixie ROOT.tar
It runs in namespaces of its own (mount, network, PID) that end with this. An agent on the software GPU runs beside
it, and firebreak-nri outside of the root. Each check is written down as it came out; the exit status is 1 where one
failed. --break no-plugin starts no firebreak-nri: all but the first check have to fail."""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

CONFIG = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  disable_connections = false
"""
SHOWS = ("/bin/busybox env; test -S $FIREBREAK_SOCKET && echo socket-is-there; test -f /run/firebreak/lib64/libfirebreak-guard.so && echo guard-is-there;"
         " for each in $(/bin/busybox awk '{print $5}' /proc/self/mountinfo); do echo mount $each; done")


def in_namespaces():
    """Runs this again in namespaces whose first process it is: whatever it starts and mounts ends with it. Only then,
    where nothing of the machine is mounted there any more, its folder is removed."""
    place = tempfile.mkdtemp(prefix="fbnri")
    done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
                           sys.executable, *sys.argv], env={**os.environ, "FIREBREAK_PLACE": place}, check=False)
    shutil.rmtree(place)
    return done.returncode


class Machine:
    def __init__(self, programs, archive, place):
        self.programs, self.place = programs, place
        self.root, self.agent_folder = place / "root", place / "agent"
        self.logs = self.root / "tmp/logs"
        self.root.mkdir()
        self.agent_folder.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", self.root], check=True)
        subprocess.run(["mount", "--bind", self.root, self.root], check=True)  # for runc "/" is a mount
        for folder in ("proc", "sys", "dev"):
            subprocess.run(["mount", "--rbind", f"/{folder}", self.root / folder], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "run", self.root / "run"], check=True)
        for shared in (self.agent_folder, programs.parent / "lib"):
            (self.root / str(shared).lstrip("/")).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", shared, self.root / str(shared).lstrip("/")], check=True)
        self.logs.mkdir()
        (self.root / "etc/containerd").mkdir(exist_ok=True)
        for file in ("etc/hosts", "etc/resolv.conf"):  # a container gets them, and a bare root has neither
            (self.root / file).touch()
        (self.root / "etc/containerd/config.toml").write_text(CONFIG, encoding="utf-8")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.make_image()

    def make_image(self):
        """Of one layer with busybox: what pods are kept by, and what their containers run."""
        made = self.place / "image"
        (made / "bin").mkdir(parents=True)
        for folder in ("dev/shm", "proc", "sys", "run", "tmp"):
            (made / folder).mkdir(parents=True)
        shutil.copy(self.root / "bin/busybox", made / "bin/busybox")
        (made / "bin/sh").symlink_to("busybox")
        with tarfile.open(self.place / "layer.tar", "w") as layer:
            layer.add(made, arcname="")
        digest = subprocess.run(["sha256sum", self.place / "layer.tar"], check=True, capture_output=True, text=True)
        config = {"architecture": "amd64", "os": "linux",
                  "config": {"Entrypoint": ["/bin/busybox", "sleep", "1000000"], "Env": ["PATH=/bin"]},
                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest.stdout.split()[0]]}}
        (self.place / "config.json").write_text(json.dumps(config), encoding="utf-8")
        (self.place / "manifest.json").write_text(json.dumps(
            [{"Config": "config.json", "RepoTags": ["localhost/pause:1"], "Layers": ["layer.tar"]}]), encoding="utf-8")
        with tarfile.open(self.root / "tmp/image.tar", "w") as image:
            for name in ("layer.tar", "config.json", "manifest.json"):
                image.add(self.place / name, arcname=name)

    def start(self, name, *command, **environment):
        log = open(self.place / f"{name}.log", "a", encoding="utf-8")
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env={**os.environ, **environment})

    def said(self, name, wanted, times=1):
        """Waits for it."""
        for _ in range(300):
            text = (self.place / f"{name}.log").read_text(encoding="utf-8")
            if text.count(wanted) >= times:
                return True
            time.sleep(0.1)
        print(text[-2000:], file=sys.stderr)
        return False

    def start_containerd(self):
        containerd = self.start("containerd", "chroot", self.root, "containerd")
        for _ in range(100):
            if (self.root / "run/containerd/containerd.sock").exists() and subprocess.run(
                    ["chroot", self.root, "ctr", "version"], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        return containerd

    def pod(self, name, annotations, containers="main"):
        """What came of each container, and what it wrote."""
        done = subprocess.run([self.programs / "cri-pod", self.root / "run/containerd/containerd.sock", "/tmp/logs", name,
                               annotations, containers, "/bin/sh", "-c", SHOWS],
                              capture_output=True, text=True, timeout=60, check=False)
        fates = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        if "pod" in fates or done.stderr:
            print(done.stdout, done.stderr, file=sys.stderr)
        return {each: (fates.get(each, ""), self.written(name, each)) for each in containers.split(",")}

    def written(self, pod, container):
        file = self.logs / f"{pod}.{container}"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [re.sub(r"^\S+ \S+ \S ", "", line) for line in lines]


def value(lines, name):
    return next((line.split("=", 1)[1] for line in lines if line.startswith(name + "=")), "")


def has_seat(container, folder, domain):
    fate, lines = container
    pipe = f"{folder}/{domain}/pipe"
    return (fate == "ran" and value(lines, "CUDA_MPS_PIPE_DIRECTORY") == pipe and f"mount {pipe}" in lines
            and "socket-is-there" in lines and "guard-is-there" in lines)


def checks(machine, containerd):
    folder = machine.agent_folder
    fate, lines = machine.pod("plain", "")["main"]
    yield "a pod without annotations gets nothing", fate == "ran" and not value(lines, "CUDA_MPS_PIPE_DIRECTORY")
    yield "a pod with firebreak.dev/seat: b is in domain b", has_seat(
        machine.pod("seated", "firebreak.dev/seat=b")["main"], folder, "b")
    two = machine.pod("two", "firebreak.dev/pair=main,spare", "main,spare")
    pipes = {name: value(two.get(name, ("", []))[1], "CUDA_MPS_PIPE_DIRECTORY") for name in ("main", "spare")}
    yield "a pair's containers are in two domains, and each reaches both", (
        set(pipes.values()) == {f"{folder}/a/pipe", f"{folder}/b/pipe"}
        and all(f"mount {pipe}" in two[name][1] for name in two for pipe in pipes.values()))
    yield "they are active and standby of one tenant", (
        [value(two.get(name, ("", []))[1], "FIREBREAK_ROLE") for name in ("main", "spare")] == ["active", "standby"]
        and all(value(lines, "FIREBREAK_TENANT") == "default.two" for _, lines in two.values()))
    fate, _ = machine.pod("bad", "firebreak.dev/seat=z")["main"]
    yield "a domain that there is not is told by containerd", "there is no domain 'z' (there are: a, b)" in fate
    fate, _ = machine.pod("typo", "firebreak.dev/seats=a")["main"]
    yield "an annotation that there is not is told by containerd", "firebreak.dev/seats: there is no such one" in fate
    containerd.terminate()
    containerd.wait()
    machine.start_containerd()
    yield "a containerd that restarts is registered with again", machine.said("nri", "asks for each container", 2)
    yield "and its pods get their seats", has_seat(machine.pod("again", "firebreak.dev/seat=a")["main"], folder, "a")


def version(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout.strip()


def run(machine, given):
    containerd = machine.start_containerd()
    subprocess.run(["chroot", machine.root, "ctr", "-n", "k8s.io", "image", "import", "/tmp/image.tar"], check=True,
                   stdout=subprocess.DEVNULL)
    agent = machine.start("agent", given.programs / "firebreakd", "--directory", machine.agent_folder,
                          FIREBREAK_GPU="soft")
    machine.said("agent", "firebreakd: ")
    (machine.place / "nri.log").touch()
    if not given.broken:
        machine.start("nri", given.programs / "firebreak-nri", "--socket", machine.agent_folder / "agent.sock",
                      "--nri-socket", machine.root / "run/nri/nri.sock", "--shm", "")
        machine.said("nri", "asks for each container")
        machine.said("nri", "seats are healthy")
    came = []
    for what, holds in checks(machine, containerd):
        print(f"{'ok' if holds else 'FAILED'}: {what}", flush=True)
        came.append({"check": what, "holds": bool(holds)})
    result = {"what": "firebreak-nri under containerd, with pods that are asked for as a kubelet asks",
              "device": "Firebreak Software GPU", "date": datetime.date.today().isoformat(),
              "commit": version("git", "-C", pathlib.Path(__file__).parent, "rev-parse", "HEAD"),
              "command": "tests/nri/nri_on_containerd.py build/dev/bin ROOT.tar RESULT.json",
              "versions": {"firebreak": version(given.programs / "firebreak-nri", "--version"),
                           "containerd": version("chroot", machine.root, "containerd", "--version"),
                           "runc": version("chroot", machine.root, "runc", "--version").splitlines()[0],
                           "kernel": os.uname().release},
              "checks": came}
    agent.terminate()
    agent.wait()
    is_well = all(each["holds"] for each in came)
    if not given.broken:
        given.result.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if not is_well:
        for name in ("nri", "containerd", "agent"):
            print((machine.place / f"{name}.log").read_text(encoding="utf-8")[-3000:], file=sys.stderr)
    return 0 if is_well else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("root", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("result", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--break", dest="broken", choices=["no-plugin"])
    given = parser.parse_args()
    if "FIREBREAK_PLACE" not in os.environ:
        sys.exit(in_namespaces())
    machine = Machine(given.programs, given.root, pathlib.Path(os.environ["FIREBREAK_PLACE"]))
    sys.exit(run(machine, given))


if __name__ == "__main__":
    main()
