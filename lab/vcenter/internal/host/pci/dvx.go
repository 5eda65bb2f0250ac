package pci

import (
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// dvxClasses returns the classes of devices with Enhanced DirectPath I/O.
// VMware: the type tables of pyVmomi 9.1, HostHardwareInfo.dvxClasses, HostDvxClass.
func (s *System) dvxClasses() (list []types.HostDvxClass) {
	for _, c := range s.host.Hardware.DVXClasses {
		list = append(list, types.HostDvxClass{DeviceClass: c.Name, CheckpointSupported: c.Checkpoint,
			SriovNic: c.SRIOVNIC})
	}
	return list
}

// offerDVX adds the classes to a config target.
// VMware: the type tables of pyVmomi 9.1, ConfigTarget.dvxClassInfo, VirtualMachineDvxClassInfo.
func (s *System) offerDVX(target *types.ConfigTarget) {
	for _, c := range s.host.Hardware.DVXClasses {
		name := &types.ElementDescription{Description: types.Description{Label: c.Name, Summary: c.Name}, Key: c.Name}
		target.DvxClassInfo = append(target.DvxClassInfo, types.VirtualMachineDvxClassInfo{DeviceClass: name,
			SriovNic: c.SRIOVNIC})
	}
}

// Moves reports whether virtual machines with devices of a class can move from and to this host.
// VMware: govmomi's types, HostDvxClass.checkpointSupported; vSphere 8.0 release notes: Enhanced DirectPath I/O can
// support vMotion.
// Ours: a class without checkpoints does not move (unproven).
func (s *System) Moves(class string) bool {
	return slices.ContainsFunc(s.host.Hardware.DVXClasses, func(c datacentre.DVXClass) bool {
		return c.Name == class && c.Checkpoint
	})
}

// DVX returns the number of devices of a class on the host, and the number in use.
func (s *System) DVX(class string) (all, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.countDVX(class)
}

// countDVX is DVX for a caller that holds the lock.
func (s *System) countDVX(class string) (all, used int) {
	for _, c := range s.host.Hardware.DVXClasses {
		if c.Name == class {
			all += c.Devices
		}
	}
	for _, one := range s.dvx {
		if one.class == class {
			used++
		}
	}
	return all, used
}

// reserveDVX reserves a device of a class, and returns its class, or "" if none is free. The caller holds the lock.
func (s *System) reserveDVX(vm vcsim.Ref, class string) string {
	if all, used := s.countDVX(class); used >= all {
		return ""
	}
	s.dvx = append(s.dvx, dvxUse{class: class, vm: vm})
	return class
}

// dvxUse is a device of a class in use.
type dvxUse struct {
	class string
	vm    vcsim.Ref
}
