#!/usr/bin/env bash
# Builds kind and, for machines that cannot pull one, its node image, from Go modules and Debian packages into a cache folder, once. Prints
# the built file on standard output.
#
#   hack/kind/build.sh kind     the program kind
#   hack/kind/build.sh node     the file system of the node image, as a tar archive; requires root and debootstrap
#
# The base files of the node image are those in kind's module. The folder is in the cache of hack/controlplane, which builds its control
# plane; a change of versions, or of any file here, creates a new one. DEBIAN_MIRROR names another server of Debian packages.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here"

suite=bookworm
packages=systemd,conntrack,iptables,nftables,iproute2,ethtool,kmod,jq,procps,containerd,runc,containernetworking-plugins,busybox-static
# The image of Pipe tasks, and of the specs' pods.
busybox=$(sed -n 's/.*DefaultImage = "\(.*\)".*/\1/p' ../../pkg/core/pipe/*.go)

say() { printf 'kind: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' go.mod)
cache=${TANDEM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem}
key=$( (echo "$busybox"; cat go.mod build.sh node/* ./*/*.go ../controlplane/programs/go.mod) | git hash-object --stdin | cut -c1-12)
out=$cache/kind-$version-$key
mkdir -p "$out"

# One build at a time: a second caller waits and then finds everything there.
exec 9>"$out/.lock"
if command -v flock >/dev/null && ! flock -n 9; then
  say "another build is running in $out, waiting for it"
  flock 9
fi
work=$out/.work
rm -rf --one-file-system "$work" # debootstrap, if it was killed, has left mounts
mkdir "$work"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf --one-file-system "$work"' EXIT

# compile FLAGS PACKAGE...: builds static programs into the folder, unless they are there.
compile() {
  local flags=$1 missing=() package
  shift
  for package in "$@"; do
    [ -x "$out/${package##*/}" ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "building ${missing[*]##*/} from Go modules"
  GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -ldflags "-s -w $flags" -o "$work/programs/" "${missing[@]}"
  mv "$work"/programs/* "$out/"
}

# image NAME FOLDER [ENTRYPOINT]: packs a folder into an image archive in the format of `docker save`.
image() {
  local layer config archive=$work/image
  mkdir -p "$archive" "$work/rootfs/kind/images"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$2" -cf "$archive/layer.tar" .
  layer=$(sha256sum "$archive/layer.tar" | cut -d' ' -f1)
  config=$(printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=%s"]%s},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(go env GOARCH)" /usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${3:+,\"Entrypoint\":[\"$3\"]}" "$layer")
  printf '%s' "$config" >"$archive/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$1" >"$archive/manifest.json"
  tar -C "$archive" -cf "$work/rootfs/kind/images/$(basename "${1%%:*}").tar" manifest.json config.json layer.tar
  rm -rf "$archive"
}

# program IMAGE FILE [ENTRYPOINT]: packs one program, in the folder of programs on PATH.
program() {
  rm -rf "$work/files"
  install -D "$2" "$work/files/usr/local/bin/$(basename "$2")"
  image "$1" "$work/files" "${3:-}"
}

# closure FILE...: copies programs and libraries of the node, with the libraries that they load.
closure() {
  local file
  for file in "$@" $(chroot "$work/rootfs" sh -c 'ldd "$@" 2>/dev/null | grep -o "/[^ ]*" | grep -v ":$"' - "$@" | sort -u); do
    install -D "$work/rootfs$(chroot "$work/rootfs" readlink -f "$file")" "$work/files$file"
  done
}

# kube_proxy IMAGE: packs kube-proxy with the programs of the node by which it sets rules.
kube_proxy() {
  rm -rf "$work/files"
  mkdir -p "$work/files"/usr/{bin,sbin,lib,lib64} "$work/files/run"
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$work/files/$folder"; done
  # Pods use the same variant of iptables as the node, which kind selects when the node starts.
  closure /usr/sbin/xtables-nft-multi /usr/sbin/nft /usr/sbin/conntrack /usr/bin/kmod \
    $(cd "$work/rootfs" && find usr/lib/*/xtables -name '*.so' -printf '/%p ')
  for name in iptables ip6tables; do
    for command in "$name" "$name-save" "$name-restore"; do ln -s xtables-nft-multi "$work/files/usr/sbin/$command"; done
  done
  install -D "$out/kube-proxy" "$work/files/usr/local/bin/kube-proxy"
  image "$1" "$work/files"
}

# The images that kubeadm asks for, under the names that it uses, and the one for Pipe tasks.
images() {
  local name names
  names=$("$out/kubeadm" config images list --kubernetes-version "$version" 2>/dev/null)
  for name in $names; do
    case $name in
      */etcd:*) program "$name" "$assets/etcd" ;;
      */kube-proxy:*) kube_proxy "$name" ;;
      */coredns:*) program "$name" "$out/coredns" /usr/local/bin/coredns ;;
      */pause:*) ;;
      *) program "$name" "$assets/$(basename "${name%%:*}")" ;;
    esac
  done
  program "$(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$work/rootfs/etc/containerd/config.toml")" "$out/pause" /usr/local/bin/pause
  rm -rf "$work/files"
  mkdir -p "$work/files"/{bin,etc,root} "$work/files/tmp"
  chmod 1777 "$work/files/tmp"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$work/files/etc/passwd"
  install "$work/rootfs/bin/busybox" "$work/files/bin/busybox"
  for name in $("$work/rootfs/bin/busybox" --list | grep -vx busybox); do ln -s busybox "$work/files/bin/$name"; done
  image "$busybox" "$work/files"
}

# The parts of kind's own build that need no other container: its files, services, and what containerd runs for each container.
configure() {
  local files root=$work/rootfs name
  go mod download sigs.k8s.io/kind
  files=$(GOFLAGS=-mod=readonly go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
  cp -R --no-preserve=mode,ownership "$files/." "$root/"
  chmod -R a+rX "$root/kind" "$root/etc/systemd" "$root/etc/containerd"
  chmod 755 "$root"/kind/bin/* "$root"/usr/local/bin/*
  rm -f "$root"/etc/systemd/system/*.wants/* "$root"/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* \
    "$root"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service \
    "$root"/lib/systemd/system/sockets.target.wants/*{udev,initctl}*
  echo ReadKMsg=no >>"$root/etc/systemd/journald.conf"
  ln -sf /usr/lib/systemd/systemd "$root/sbin/init"
  for name in containerd ctr containerd-shim-runc-v2; do ln -sf "/usr/bin/$name" "$root/usr/local/bin/$name"; done
  mkdir -p "$root"/etc/kubernetes/manifests "$root/opt/cni" "$root/kind/manifests"
  ln -sfn /usr/lib/cni "$root/opt/cni/bin"
  install -t "$root/usr/bin" "$out/kubelet" "$out/kubeadm" "$assets/kubectl"
  printf '%s' "$version" >"$root/kind/version"
  sed "s,BUSYBOX,$busybox," node/network.yaml >"$root/kind/manifests/default-cni.yaml"
  sed "s,BUSYBOX,$busybox," node/storage.yaml >"$root/kind/manifests/default-storage.yaml"
  chroot "$root" systemctl --quiet enable kubelet.service containerd.service undo-mount-hacks.service
  chroot "$root" systemctl --quiet mask systemd-binfmt.service
  chroot "$root" sh -c "ctr oci spec | jq '.hooks.createContainer += [{path: \"/kind/bin/mount-product-files.sh\"}] | del(.process.rlimits)' \
    >/etc/containerd/cri-base.json"
}

# Puts the images into containerd's store, from which nodes unpack them when they start a container.
import() {
  unshare --mount --pid --fork --mount-proc="$work/rootfs/proc" chroot "$work/rootfs" /bin/bash -euc '
    mkdir -p /run/containerd
    containerd --log-level fatal &
    for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.1; done
    for archive in /kind/images/*.tar; do
      ctr --namespace=k8s.io images import --label=io.cri-containerd.pinned=pinned --no-unpack "$archive" >/dev/null
    done
    kill %1
    wait'
  rm -rf "$work/rootfs/kind/images" "$work"/rootfs/run/containerd
}

node() {
  [ -f "$out/node.tar" ] && return
  [ "$(id -u)" = 0 ] || fail "building a node image requires root; run $0 node as root, or set KIND_IMAGE to an existing one"
  command -v debootstrap >/dev/null || fail "building a node image requires debootstrap: apt-get install debootstrap"
  local started=$SECONDS
  say "building a node image of Kubernetes $version, once (from Debian packages and Go modules; about ten minutes on two cores)"
  # Most of this time is spent on downloads: the programs are compiled meanwhile.
  debootstrap --variant=minbase --include="$packages" "$suite" "$work/rootfs" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$out/debootstrap.log" 2>&1 &
  local debootstrap=$!
  assets=$(cd ../.. && go run ./hack/controlplane)
  compile "$(printf -- '-X k8s.io/component-base/version.%s ' "gitVersion=$version" "gitTreeState=clean" \
    "gitMajor=1" "gitMinor=$(cut -d. -f2 <<<"$version")")" k8s.io/kubernetes/cmd/{kubelet,kubeadm,kube-proxy}
  compile "" ./coredns ./pause
  say "installing Debian packages"
  wait "$debootstrap" || fail "debootstrap failed: $(tail -1 "$out/debootstrap.log")"
  rm -rf "$work"/rootfs/var/cache/apt/* "$work"/rootfs/var/lib/apt/lists/* "$work"/rootfs/etc/{hostname,resolv.conf} # of this machine
  configure
  images
  import
  tar --numeric-owner -C "$work/rootfs" -cf "$work/node.tar" .
  mv "$work/node.tar" "$out/node.tar"
  say "built a node image in $((SECONDS - started))s: $(du -h "$out/node.tar" | cut -f1)"
}

case ${1:-} in
  kind) compile "" sigs.k8s.io/kind; echo "$out/kind" ;;
  node) node; echo "$out/node.tar" ;;
  *) sed -n '5,6s/^# *//p' "$here/build.sh" >&2; exit 2 ;;
esac
