package graphics

import (
	"regexp"
	"strconv"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host/pci"
)

var groupName = regexp.MustCompile(`^Nvidia:(\d+)@([\w-]+)`)

// deviceGroup returns a group of linked vGPUs by its name: Nvidia:2@grid_a100-40c%NVLink contains two grid_a100-40c.
// VMware: vSphere API reference 8.0, VirtualMachineVendorDeviceGroupInfo; name as shown in VMware's documentation of
// device groups.
func deviceGroup(name string) types.VirtualMachineVendorDeviceGroupInfo {
	group := types.VirtualMachineVendorDeviceGroupInfo{DeviceGroupName: name,
		DeviceGroupDescription: "vGPUs connected by NVLink"}
	group.Name = name
	parts := groupName.FindStringSubmatch(name)
	if parts == nil {
		return group
	}
	count, err := strconv.Atoi(parts[1])
	if err != nil {
		return group
	}
	kind := types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfoComponentTypeNvidiaVgpu
	for i := range int32(count) {
		device := &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
			Backing:         &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: parts[2]},
			DeviceGroupInfo: &types.VirtualDeviceDeviceGroupInfo{SequenceId: i},
		}}
		group.ComponentDeviceInfo = append(group.ComponentDeviceInfo,
			types.VirtualMachineVendorDeviceGroupInfoComponentDeviceInfo{
				Type: string(kind), VendorName: pci.NVIDIA, DeviceName: parts[2], Device: device})
	}
	return group
}
