#!/bin/sh
# What cloud-init asks of VMware Tools, answered from what the lab gave the machine: `info-get guestinfo.metadata`.
# Setting a value is accepted: the lab learns the guest's address by its sshd.
modprobe --quiet qemu_fw_cfg
case $1 in
  info-get\ *) cat "/sys/firmware/qemu_fw_cfg/by_name/opt/dml/${1#info-get }/raw" 2>/dev/null || { echo "No value found" >&2; exit 1; } ;;
esac
