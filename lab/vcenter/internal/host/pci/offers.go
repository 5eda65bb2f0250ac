package pci

import "github.com/vmware/govmomi/vim25/types"

// Offer adds the devices in DirectPath to a config target.
func (s *System) Offer(target *types.ConfigTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offerDVX(target)
	for _, d := range s.devices {
		s.offerSriov(target, d)
		p := s.passthru[d.Id]
		if !p.active {
			continue
		}
		info := types.VirtualMachineTargetInfo{Name: d.DeviceName}
		target.PciPassthrough = append(target.PciPassthrough,
			&types.VirtualMachinePciPassthroughInfo{VirtualMachineTargetInfo: info, PciDevice: d,
				SystemId: s.systemID()})
		target.DynamicPassthrough = append(target.DynamicPassthrough,
			types.VirtualMachineDynamicPassthroughInfo{VirtualMachineTargetInfo: info,
				VendorName: d.VendorName, DeviceName: d.DeviceName, CustomLabel: p.label,
				VendorId: int32(uint16(d.VendorId)), DeviceId: int32(uint16(d.DeviceId))})
	}
}

// offerSriov lists a NIC if its driver has created virtual functions.
// VMware: vSphere API reference, ConfigTarget.sriov, VirtualMachineSriovInfo: pnic is the NIC of a physical function.
func (s *System) offerSriov(target *types.ConfigTarget, d types.HostPciDevice) {
	module, ok := s.sriovModule(d.Id)
	if !ok || functions(module.Active) == 0 {
		return
	}
	info := types.VirtualMachineSriovInfo{VirtualMachinePciPassthroughInfo: types.VirtualMachinePciPassthroughInfo{
		VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: d.DeviceName}, PciDevice: d,
		SystemId: s.systemID()}}
	for _, n := range s.host.Hardware.NICs {
		if n.PCI == d.Id {
			info.Pnic = n.Device
		}
	}
	target.Sriov = append(target.Sriov, info)
}
