#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What cluster.py needs and no package has, made once: packaging/cluster/make.sh FOLDER, as root. FOLDER then has
#   bin          kubelet, kubectl and the control plane of Kubernetes 1.20, of Debian 12's source package
#   runtime.tar  a Debian 13 with containerd, runc and etcd, in which they run
#   pod.tar      a Debian 12 with what Firebreak's programs need: the pods' image
# Each is kept; whoever wants one anew removes it. Compiling takes ten minutes of one core, and 5 GB while it lasts.
set -eu -o pipefail
[ $# = 1 ] || { sed -n '3,8s/^# //p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "cluster: root is needed, to make roots" >&2; exit 2; }
mkdir -p "$1"
place=$(cd -- "$1" && pwd)

make_root() { # make_root NAME SUITE PACKAGES
  [ ! -f "$place/$1.tar" ] || return 0
  echo "cluster: making $1.tar (a minute)"
  mmdebstrap --quiet --variant=minbase --include="$3" "$2" "$place/$1.new.tar"
  mv "$place/$1.new.tar" "$place/$1.tar"
}

# Debian builds the client alone, and its clean-up leaves out a file that was made: the API's description.
write_recipe() { # write_recipe FILE
  cat >"$1" <<'RECIPE'
set -eu -o pipefail
export HOME=/root GOPATH=/root/go GO111MODULE=off CGO_ENABLED=0
cd /root
apt-get -q update
apt-get -q source kubernetes
mkdir -p go/src/k8s.io
set -- kubernetes-1.20*/
ln -s "/root/$1" go/src/k8s.io/kubernetes
cd go/src/k8s.io/kubernetes
vendor=vendor/k8s.io
go install "k8s.io/kubernetes/$vendor/kube-openapi/cmd/openapi-gen"
described=$(grep -rlE --include='*.go' '^// *\+k8s:openapi-gen=' pkg cmd $vendor/*/ |
  grep -vE '/zz_generated|_test.go|/(code-generator|sample-[a-z-]*)/' | xargs -n1 dirname | LC_ALL=C sort -u)
/root/go/bin/openapi-gen --logtostderr -i "$(sed 's#^#k8s.io/kubernetes/#' <<<"$described" | paste -sd,)" \
  -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
  -h $vendor/code-generator/hack/boilerplate.go.txt -r /tmp/violations
version=k8s.io/kubernetes/$vendor/component-base/version
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
  go build -ldflags "-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" \
    -o "/root/bin/$program" "k8s.io/kubernetes/cmd/$program"
done
RECIPE
}

make_kubernetes() {
  [ ! -x "$place/bin/kubectl" ] || return 0
  local root=$place/builder
  echo "cluster: compiling Kubernetes (ten minutes of one core; log: $place/kubernetes.log)"
  rm -rf "$root"
  mmdebstrap --quiet --variant=minbase --include=golang-go,ca-certificates,dpkg-dev,patch bookworm "$root"
  sed -i 's/^deb \(.*\)/&\ndeb-src \1/' "$root/etc/apt/sources.list"
  write_recipe "$root/root/recipe"
  # shellcheck disable=SC2016 # the inner shell's
  unshare --mount --pid --fork --kill-child sh -c 'mount -t proc none "$1/proc" && mount --rbind /dev "$1/dev" &&
    exec chroot "$1" bash /root/recipe' sh "$root" >"$place/kubernetes.log" 2>&1 </dev/null ||
    { tail -n 20 "$place/kubernetes.log" >&2; exit 1; }
  mv "$root/root/bin" "$place/bin"
  rm -rf "$root"
}

make_root runtime trixie containerd,runc,etcd-server,containernetworking-plugins,ca-certificates,mount,util-linux
make_root pod bookworm \
  libfmt9,libspdlog1.10,libstdc++6,libgrpc++1.51,libprotobuf32,libcurl4,libyaml-cpp0.7,libsystemd0,procps
make_kubernetes
