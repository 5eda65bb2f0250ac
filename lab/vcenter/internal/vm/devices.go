package vm

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// NumberDevices numbers and labels new devices: disks from 2000, network cards from 4000, PCI devices from 13000.
// VMware: the keys and labels that a vCenter assigns, according to public dumps of virtual machines. vcsim counts
// from 201, and labels a new network card "ethernet--7".
func NumberDevices(there []types.BaseVirtualDevice, changes []types.BaseVirtualDeviceConfigSpec) {
	used, renumbered := map[int32]bool{}, map[int32]int32{}
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
		renumbered[d.Key] = key
		d.Key, used[key] = key, true
		if d.DeviceInfo == nil || d.DeviceInfo.GetDescription().Label == "" {
			d.DeviceInfo = &types.Description{Label: fmt.Sprintf(label, key-first+1)}
		}
	}
	for _, c := range changes {
		if controller, ok := c.GetVirtualDeviceConfigSpec().Device.(types.BaseVirtualController); ok {
			renumber(controller.GetVirtualController().Device, renumbered)
		}
	}
}

// renumber replaces the client's keys in a new controller's list of devices with the new keys.
func renumber(keys []int32, renumbered map[int32]int32) {
	for i, key := range keys {
		if now, ok := renumbered[key]; ok {
			keys[i] = now
		}
	}
}

// list lists with each controller the devices that it has, which vcsim does not do for clones and removed devices.
// VMware: vSphere API reference, VirtualController.device.
func list(devices []types.BaseVirtualDevice) {
	held := map[int32][]int32{}
	for _, d := range devices {
		one := d.GetVirtualDevice()
		held[one.ControllerKey] = append(held[one.ControllerKey], one.Key)
	}
	for _, d := range devices {
		if controller, ok := d.(types.BaseVirtualController); ok {
			c := controller.GetVirtualController()
			c.Device = held[c.Key]
		}
	}
}

// RefuseNetworks returns the fault of a network card on a network that does not exist, for which vcsim's process
// crashes.
// VMware: vSphere API reference, InvalidDeviceBacking.
// Ours: the choice of this fault (unproven).
func RefuseNetworks(ctx *simulator.Context, changes []types.BaseVirtualDeviceConfigSpec) vcsim.Fault {
	networks := ctx.Map.All("Network")
	for i, c := range changes {
		change := c.GetVirtualDeviceConfigSpec()
		card, ok := change.Device.(types.BaseVirtualEthernetCard)
		if !ok || change.Operation == types.VirtualDeviceConfigSpecOperationRemove {
			continue
		}
		backing, ok := card.GetVirtualEthernetCard().Backing.(*types.VirtualEthernetCardNetworkBackingInfo)
		known := func(n mo.Entity) bool { return n.Entity().Name == backing.DeviceName }
		if ok && !slices.ContainsFunc(networks, known) {
			wrong := types.InvalidVmConfig{Property: "virtualDeviceSpec.device.backing"}
			return &types.InvalidDeviceBacking{
				InvalidDeviceSpec: types.InvalidDeviceSpec{InvalidVmConfig: wrong, DeviceIndex: int32(i)}}
		}
	}
	return nil
}

// series returns the first key of a kind of devices and their label, or 0 for kinds that vcsim numbers.
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
