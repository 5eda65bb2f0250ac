package pci

import (
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Reserve reserves a device in DirectPath for a virtual machine, and returns "" if no device that its backing allows
// is free.
// VMware: vSphere API reference, VirtualPCIPassthroughDynamicBackingInfo.allowedDevice, customLabel, assignedId.
func (s *System) Reserve(vm vcsim.Ref, backing types.BaseVirtualDeviceBackingInfo) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := backing.(*types.VirtualPCIPassthroughDvxBackingInfo); ok {
		return s.reserveDVX(vm, b.DeviceClass)
	}
	for _, d := range s.devices {
		p := s.passthru[d.Id]
		if _, taken := s.reserved[d.Id]; !p.active || taken || !answers(backing, d, p.label) {
			continue
		}
		s.reserved[d.Id] = vm
		return d.Id
	}
	return ""
}

// Release releases the devices of a virtual machine.
func (s *System) Release(vm vcsim.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dvx = slices.DeleteFunc(s.dvx, func(one dvxUse) bool { return one.vm == vm })
	maps.DeleteFunc(s.reserved, func(_ string, holder vcsim.Ref) bool { return holder == vm })
}

// Holder returns the virtual machine that has reserved a device.
func (s *System) Holder(pci string) vcsim.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved[pci]
}

// answers reports whether a backing allows a device.
func answers(backing types.BaseVirtualDeviceBackingInfo, d types.HostPciDevice, label string) bool {
	switch b := backing.(type) {
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		return strings.EqualFold(b.Id, d.Id)
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		if b.CustomLabel != "" && b.CustomLabel != label {
			return false
		}
		for _, a := range b.AllowedDevice {
			if uint16(a.VendorId) == uint16(d.VendorId) && uint16(a.DeviceId) == uint16(d.DeviceId) {
				return true
			}
		}
	}
	return false
}
