#!/usr/bin/env bash
# Builds images of the software that the example packages run, for machines that cannot pull them: Redis, its exporter and ZooKeeper from
# Debian packages, under the names and tags that the packages use, whatever Debian's version is. Builds their archive in the cache once, and
# prints its path. Requires root and debootstrap. For tests only.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

suite=bookworm
packages="redis-server prometheus-redis-exporter libzookeeper-java default-jre-headless netcat-openbsd"
# Specs upgrade from the first version to the second. The packages of the KUDO community ask for the third.
redis=(redis:7.4.1 redis:7.4.2 redis:5.0.1-alpine)
zookeeper=(zookeeper:3.9.2 zookeeper:3.9.3 zookeeper:3.6.2)
exporter=(oliver006/redis_exporter:v1.66.0)

fail() { printf 'kind: %s\n' "$*" >&2; exit 1; }

key=$(git hash-object "$here/software.sh" | cut -c1-12)
out=${TANDEM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem}/kind-software-$key
archive=$out/images.tar

mkdir -p "$out"
exec 9>"$out/.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ -f "$archive" ]; then echo "$archive"; exit; fi
[ "$(id -u)" = 0 ] || fail "building images of Redis and ZooKeeper requires root; run hack/kind/software.sh as root"
command -v debootstrap >/dev/null || fail "building images of Redis and ZooKeeper requires debootstrap: apt-get install debootstrap"

printf 'kind: building images of Redis and ZooKeeper from Debian packages, once (a few minutes)\n' >&2
work=$out/.work root=$out/.work/rootfs images=$out/.work/images
rm -rf --one-file-system "$work"
mkdir -p "$images"
trap 'rm -rf --one-file-system "$work"' EXIT

debootstrap --variant=minbase "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$out/build.log" 2>&1 ||
  fail "debootstrap failed: $(tail -1 "$out/build.log")"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # starts no services
chmod 755 "$root/usr/sbin/policy-rc.d"
unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" /bin/sh -euc "
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  apt-get install --yes --no-install-recommends $packages
  apt-get clean" >>"$out/build.log" 2>&1 || fail "installing Debian packages failed: $(tail -1 "$out/build.log")"
rm -rf "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale} "$root"/etc/{hostname,resolv.conf}

# The folders, the user and the programs that packages expect in the published images.
mkdir -m 777 "$root"/{data,conf,logs}
echo 'zookeeper:x:1000:1000::/data:/bin/bash' >>"$root/etc/passwd"
# In place of the scripts of ZooKeeper, whose package depends on a desktop's Java.
java='exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.admin.enableServer=false' classes=''
for jar in zookeeper zookeeper-jute slf4j-api slf4j-simple netty-all commons-cli commons-io metrics-core snappy-java; do
  classes+=${classes:+:}/usr/share/java/$jar.jar
done
cat >"$root/usr/local/bin/zkServer.sh" <<EOF
#!/bin/sh
conf=/conf
if [ "\$1" = --config ]; then conf=\$2; fi
if [ -f "\$conf/java.env" ]; then . "\$conf/java.env"; fi
$java \$JVMFLAGS -cp $classes org.apache.zookeeper.server.quorum.QuorumPeerMain "\$conf/zoo.cfg"
EOF
cat >"$root/usr/local/bin/zkCli.sh" <<EOF
#!/bin/sh
$java -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp $classes org.apache.zookeeper.ZooKeeperMain "\$@"
EOF
mkdir "$root/zookeeper"
ln -s /usr/local/bin "$root/zookeeper/bin"
# The package redis of the KUDO community needs nslookup with the output of an old busybox, and a redis-cli that ignores -x with --cluster.
printf '#!/bin/sh\ngetent hosts "$1" | while read -r ip name; do echo "Address 1: $ip $name"; done\n' >"$root/usr/local/bin/nslookup"
printf '#!/bin/sh\ncase "$*" in "-x "*" --cluster "*) shift ;; esac\nexec /usr/bin/redis-cli "$@"\n' >"$root/usr/local/bin/redis-cli"
chmod 755 "$root"/usr/local/bin/*

tar --sort=name --numeric-owner -C "$root" -cf "$images/layer.tar" .
layer=$(sha256sum "$images/layer.tar" | cut -d' ' -f1)

# variant NAME CONFIG TAG...: adds an image of the layer with a configuration to the manifest, under all tags.
manifest=''
variant() {
  local name=$1 config=$2 tags=''
  shift 2
  for tag in "$@"; do
    case $tag in */*) ;; *) tag=library/$tag ;; esac
    tags+=${tags:+,}\"docker.io/$tag\"
  done
  printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(go env GOARCH)" "$config" "$layer" >"$images/$name.json"
  manifest+=${manifest:+,}"{\"Config\":\"$name.json\",\"RepoTags\":[$tags],\"Layers\":[\"layer.tar\"]}"
}
path='"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"'
variant redis "{\"Env\":[$path],\"WorkingDir\":\"/data\",\"Entrypoint\":[\"redis-server\"]}" "${redis[@]}"
variant zookeeper "{\"Env\":[$path],\"WorkingDir\":\"/zookeeper\"}" "${zookeeper[@]}"
variant exporter "{\"Env\":[$path],\"Entrypoint\":[\"prometheus-redis-exporter\"]}" "${exporter[@]}"
printf '[%s]' "$manifest" >"$images/manifest.json"
tar -C "$images" -cf "$work/images.tar" manifest.json redis.json zookeeper.json exporter.json layer.tar
mv "$work/images.tar" "$archive"
echo "$archive"
