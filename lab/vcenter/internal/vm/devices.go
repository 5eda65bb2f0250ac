package vm

import (
	"fmt"

	"github.com/vmware/govmomi/vim25/types"
)

// NumberDevices numbers and labels new devices: disks from 2000, network cards from 4000, PCI devices from 13000.
// VMware: the keys and labels that a vCenter gives, as public dumps of virtual machines show. vcsim counts from 201,
// and labels a new network card "ethernet--7".
func NumberDevices(there []types.BaseVirtualDevice, changes []types.BaseVirtualDeviceConfigSpec) {
	used := map[int32]bool{}
	for _, d := range there {
		used[d.GetVirtualDevice().Key] = true
	}
	for _, c := range changes {
		change := c.GetVirtualDeviceConfigSpec()
		first, label := series(change.Device)
		if change.Operation != types.VirtualDeviceConfigSpecOperationAdd || first == 0 {
			continue
		}
		key := first
		for used[key] {
			key++
		}
		d := change.Device.GetVirtualDevice()
		d.Key, used[key] = key, true
		if d.DeviceInfo == nil || d.DeviceInfo.GetDescription().Label == "" {
			d.DeviceInfo = &types.Description{Label: fmt.Sprintf(label, key-first+1)}
		}
	}
}

// series is the first key of a kind of devices and their label, 0 for kinds that vcsim numbers.
func series(d types.BaseVirtualDevice) (first int32, label string) {
	switch d.(type) {
	case *types.VirtualDisk:
		return 2000, "Hard disk %d"
	case types.BaseVirtualEthernetCard:
		return 4000, "Network adapter %d"
	case *types.VirtualPCIPassthrough:
		return 13000, "PCI device %d"
	}
	return 0, ""
}
