#!/usr/bin/env bash
# Becomes the libvirtd of one hypervisor host. Runs in separate network, mount and UTS namespaces:
# host.sh NAME ENGINE ETC CACHE SHARED..., where ETC is a folder with libvirtd.conf and qemu.conf, and SHARED are folders
# that the host has under the same path. All mounts are removed with the namespace.
set -euo pipefail
name=$1 engine=$2 etc=$3 cache=$4
shift 4
mount --make-rprivate /
hostname "$name"
top=$(mktemp -d "$etc/root-XXXXXX")
mount -t tmpfs tmpfs "$top"
mkdir "$top/written" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=$engine,upperdir=$top/written,workdir=$top/work" "$top/root"
root=$top/root
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root/run/libvirt" "$root/var/cache/libvirt/qemu"
mount --bind "$cache" "$root/var/cache/libvirt/qemu"
cp "$etc/libvirtd.conf" "$etc/qemu.conf" "$root/etc/libvirt/"
echo "127.0.0.1 localhost $name" >"$root/etc/hosts"
for folder in "$@"; do
  mkdir -p "$root$folder"
  mount --bind "$folder" "$root$folder"
done
exec chroot "$root" /usr/sbin/libvirtd --listen
