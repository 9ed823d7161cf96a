# SPDX-License-Identifier: Apache-2.0
"""A node with a Kubernetes 1.20 of its own, in namespaces that end with the program that uses this."""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

LIMIT_S = 120  # for whatever is waited for
NODE = "node1"
NODE_ADDRESS = "192.0.2.1"
SERVICE_ADDRESS = "10.96.0.1"  # where pods find the API server
POD_NETWORK = {"cniVersion": "0.4.0", "name": "pods", "type": "ptp",
               "ipam": {"type": "host-local", "subnet": "10.88.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/tenants:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
"""
# What a kubelet wants of the machine, and what it is not to change there.
KERNEL_SETTINGS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10",
                   "kernel/panic_on_oops": "1", "kernel/keys/root_maxkeys": "1000000",
                   "kernel/keys/root_maxbytes": "25000000"}
# Who logs in: a certificate's name and group.
USERS = {"admin": ("admin", "system:masters"), "kubelet": (f"system:node:{NODE}", "system:nodes"),
         "controller-manager": ("system:kube-controller-manager", "system:kube-controller-manager"),
         "scheduler": ("system:kube-scheduler", "system:kube-scheduler")}


class Failed(Exception):
    pass


def wait_for(what, holds, why=lambda: "", limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"not within {limit_s} s: {what} {why()}")
        time.sleep(0.1)


def must(*command, **how):
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S, **how)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.returncode}: {(done.stdout + done.stderr).strip()[-800:]}")
    return done.stdout.strip()


def in_namespaces():
    """Runs this again in namespaces whose first process it is: whatever it starts and mounts ends with it. Then what it
    left is removed, and its control groups."""
    place = tempfile.mkdtemp(prefix="fbk8s")
    os.chmod(place, 0o755)
    done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
                           sys.executable, "-B", *sys.argv], env={**os.environ, "FIREBREAK_PLACE": place}, check=False)
    remove_groups(pathlib.Path(place).name)
    shutil.rmtree(place)
    return done.returncode


def remove_groups(name):
    """Whose last processes may still be ending."""
    for _ in range(100):
        groups = sorted(pathlib.Path("/sys/fs/cgroup").glob(f"**/{name}/**/"), reverse=True)
        for group in groups:
            with contextlib.suppress(OSError):
                group.rmdir()
        if not groups:
            return
        time.sleep(0.1)


class Machine:
    """`made`: what make.sh made. `programs`: Firebreak's, beside their libraries."""

    def __init__(self, programs, made, place):
        self.programs, self.made, self.place = programs, made, place
        self.root, self.agent_folder, self.gpu = place / "root", place / "a", place / "gpu"
        self.share, self.keys, self.logs = place / "share", place / "keys", place / "logs"
        self.group = place.name
        self.processes = {}
        for folder in (self.root, self.agent_folder, self.gpu, self.share, self.keys, self.logs):
            folder.mkdir()
        self.gpu.chmod(0o711)  # a software GPU of every user's
        self.share.chmod(0o1777)
        self.mount_root()
        for command in ("ip link set lo up", f"ip address add {NODE_ADDRESS}/32 dev lo",
                        f"ip address add {SERVICE_ADDRESS}/32 dev lo"):
            must(*command.split())
        self.make_image()
        self.make_keys()

    def inside(self, path):
        return self.root / str(path).lstrip("/")

    def mount_root(self):
        """The runtime, the kubelet and etcd live in a Debian of their own; what they share with us has our paths."""
        must("tar", "-xf", self.made / "runtime.tar", "-C", self.root)
        must("mount", "--bind", self.root, self.root)  # for runc "/" is a mount
        for folder in ("proc", "sys", "dev"):
            must("mount", "--rbind", f"/{folder}", self.root / folder)
        for folder, mode in (("run", "755"), ("dev/shm", "1777")):
            must("mount", "-t", "tmpfs", "-o", f"mode={mode}", "none", self.root / folder)
        settings = self.place / "settings"
        for name, value in KERNEL_SETTINGS.items():
            file = settings / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value + "\n", encoding="utf-8")
            must("mount", "--bind", file, self.root / "proc/sys" / name)
        for shared in (self.agent_folder, self.gpu, self.share, self.keys, self.programs.parent / "lib",
                       self.made / "bin"):
            self.inside(shared).mkdir(parents=True)
            must("mount", "--bind", shared, self.inside(shared))
        for file, content in (("etc/containerd/config.toml", CONTAINERD),
                              ("etc/cni/net.d/10-pods.conf", json.dumps(POD_NETWORK)),
                              ("etc/hosts", "127.0.0.1 localhost\n"), ("etc/resolv.conf", "nameserver 127.0.0.1\n"),
                              ("etc/machine-id", "0" * 31 + "1\n")):
            self.inside(file).parent.mkdir(parents=True, exist_ok=True)
            self.inside(file).write_text(content, encoding="utf-8")

    def make_image(self):
        """One for all pods: a Debian 12 with Firebreak's programs, where they are here, too."""
        with tarfile.open(self.place / "programs.tar", "w") as layer:
            for name in ("firebreak", "firebreak-lab", "firebreak-decode", "firebreak-k8s"):
                layer.add(self.programs / name, arcname=str(self.programs / name).lstrip("/"))
            for name in ("libfirebreak.so.0", "softgpu"):
                path = self.programs.parent / "lib" / name
                layer.add(path, arcname=str(path).lstrip("/"))
                if path.is_symlink():
                    layer.add(path.resolve(), arcname=str(path.parent / os.readlink(path)).lstrip("/"))
            link = tarfile.TarInfo("usr/bin/firebreak-k8s")
            link.type, link.linkname = tarfile.SYMTYPE, str(self.programs / "firebreak-k8s")
            layer.addfile(link)
        (self.place / "pod.tar").symlink_to(self.made / "pod.tar")
        layers = ["pod.tar", "programs.tar"]
        sums = [must("sha256sum", self.place / name).split()[0] for name in layers]
        config = {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/bin/sleep", "infinity"],
                  "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + each for each in sums]}}
        manifest = [{"Config": "config.json", "RepoTags": ["localhost/tenants:1"], "Layers": layers}]
        for name, content in (("config.json", config), ("manifest.json", manifest)):
            (self.place / name).write_text(json.dumps(content), encoding="utf-8")
        with tarfile.open(self.inside("/tmp/image.tar"), "w", dereference=True) as image:
            for name in [*layers, "config.json", "manifest.json"]:
                image.add(self.place / name, arcname=name)

    def make_keys(self):
        def openssl(*words):
            must("openssl", *words, cwd=self.keys)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca", "-days", "2", "-keyout", "ca.key",
                "-out", "ca.crt")
        openssl("genrsa", "-out", "sa.key", "2048")
        openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        names = f"subjectAltName=IP:127.0.0.1,IP:{NODE_ADDRESS},IP:{SERVICE_ADDRESS},DNS:kubernetes.default.svc"
        for who, (name, group) in {"server": ("kube-apiserver", "servers"), **USERS}.items():
            openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/O={group}/CN={name}", "-keyout", f"{who}.key",
                    "-out", f"{who}.csr")
            (self.keys / "extra").write_text(names if who == "server" else "", encoding="utf-8")
            openssl("x509", "-req", "-in", f"{who}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                    "-days", "2", "-extfile", "extra", "-out", f"{who}.crt")

        def data(name):
            return base64.b64encode((self.keys / name).read_bytes()).decode()
        for who in USERS:
            (self.keys / f"{who}.conf").write_text(json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": who}}],
                "clusters": [{"name": "here", "cluster": {"server": f"https://{NODE_ADDRESS}",
                                                          "certificate-authority-data": data("ca.crt")}}],
                "users": [{"name": who, "user": {"client-certificate-data": data(f"{who}.crt"),
                                                 "client-key-data": data(f"{who}.key")}}]}), encoding="utf-8")

    def start(self, name, *command, **environment):
        log = open(self.logs / f"{name}.log", "a", encoding="utf-8")
        self.processes[name] = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, env={**os.environ, **environment})

    def end(self, name):
        process = self.processes.pop(name)
        process.terminate()
        return process.wait()

    def log(self, name):
        file = self.logs / f"{name}.log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def start_control_plane(self):
        keys, programs = self.keys, self.made / "bin"
        self.start("etcd", "chroot", self.root, "etcd", "--data-dir", "/tmp/etcd")
        self.start("apiserver", programs / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                   "--bind-address=0.0.0.0", f"--advertise-address={NODE_ADDRESS}", "--secure-port=443",
                   "--endpoint-reconciler-type=none",
                   f"--tls-cert-file={keys}/server.crt", f"--tls-private-key-file={keys}/server.key",
                   f"--client-ca-file={keys}/ca.crt", "--authorization-mode=Node,RBAC",
                   "--enable-admission-plugins=NodeRestriction", "--service-account-issuer=https://here",
                   f"--service-account-key-file={keys}/sa.pub", f"--service-account-signing-key-file={keys}/sa.key",
                   "--service-cluster-ip-range=10.96.0.0/24", "--event-ttl=60s")
        wait_for("the API server is ready", lambda: self.asked("get", "--raw", "/readyz") == "ok",
                 lambda: self.log("apiserver")[-600:] + self.log("etcd")[-600:])
        self.start("controller-manager", programs / "kube-controller-manager",
                   f"--kubeconfig={keys}/controller-manager.conf", f"--service-account-private-key-file={keys}/sa.key",
                   f"--root-ca-file={keys}/ca.crt",
                   "--use-service-account-credentials", "--leader-elect=false", "--bind-address=127.0.0.1", "--port=0")
        self.start("scheduler", programs / "kube-scheduler", f"--kubeconfig={keys}/scheduler.conf",
                   "--leader-elect=false", "--bind-address=127.0.0.1", "--port=0")

    def start_node(self):
        for each in pathlib.Path("/sys/fs/cgroup").iterdir():
            if (each / "cgroup.procs").exists() and not each.is_symlink():
                (each / self.group).mkdir(exist_ok=True)
        self.start("containerd", "chroot", self.root, "containerd")
        wait_for("containerd answers", lambda: self.in_root("ctr", "version").returncode == 0,
                 lambda: self.log("containerd"))
        must("chroot", self.root, "ctr", "-n", "k8s.io", "image", "import", "/tmp/image.tar")
        self.start_kubelet()

    def in_root(self, *command):
        return subprocess.run(["chroot", self.root, *command], capture_output=True, text=True, check=False)

    def start_kubelet(self):
        self.start("kubelet", "chroot", self.root, self.made / "bin/kubelet", f"--kubeconfig={self.keys}/kubelet.conf",
                   f"--hostname-override={NODE}", f"--node-ip={NODE_ADDRESS}", f"--address={NODE_ADDRESS}",
                   "--container-runtime=remote", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
                   "--fail-swap-on=false", f"--cgroup-root=/{self.group}", "--cgroup-driver=cgroupfs",
                   "--node-labels=firebreak.dev/agent=true", "--eviction-hard=memory.available<1Mi",
                   "--image-gc-high-threshold=100", "--register-with-taints=", "--resolv-conf=/etc/resolv.conf")

    def start_agent(self):
        self.start("agent", self.programs / "firebreakd", "--directory", self.agent_folder, "--tenant-group", "65534",
                   FIREBREAK_GPU="soft", FIREBREAK_SOFTGPU_DIR=str(self.gpu))
        wait_for("the agent listens", lambda: "firebreakd: " in self.log("agent"), lambda: self.log("agent"))

    def firebreak(self, *words):
        return must(self.programs / "firebreak", *words, "--socket", self.agent_folder / "agent.sock")

    def agents_status(self):
        return json.loads(self.firebreak("status", "--json"))

    def written(self, pods):
        """What containers wrote whose pods are called so, by NAMESPACE_NAME_ or how that begins."""
        logs = sorted(self.inside("/var/log/pods").glob(f"{pods}*/*/*.log"))
        return "".join(file.read_text(encoding="utf-8", errors="replace") for file in logs)

    def kubectl(self, *words, **how):
        return must(self.made / "bin/kubectl", f"--kubeconfig={self.keys}/admin.conf",
                    f"--cache-dir={self.place}/cache", *words, **how)

    def asked(self, *words):
        """Empty: it was refused, or nobody answered."""
        try:
            return self.kubectl(*words)
        except Failed:
            return ""

    def apply(self, *manifests):
        every = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", input=json.dumps(every))

    def objects(self, kind, *words):
        return json.loads(self.kubectl("get", kind, "-o", "json", *words))["items"]

    def node(self):
        return next((each for each in self.objects("nodes") if each["metadata"]["name"] == NODE), {"status": {}})

    def condition(self, kind):
        all_of_them = self.node()["status"].get("conditions", [])
        return next((each for each in all_of_them if each["type"] == kind), {"status": "none", "message": ""})

    def pod(self, name):
        return next((each for each in self.objects("pods") if each["metadata"]["name"] == name),
                    {"metadata": {}, "status": {"phase": "gone"}})
