package vm

import (
	"maps"
	"strconv"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Profiles are the storage policies of a virtual machine: of its home, and of its disks by their keys.
type Profiles struct {
	Home  string
	Disks map[string]string
}

// Profiles returns the storage policies of a virtual machine.
func (s *Machines) Profiles(vm vcsim.Ref) Profiles {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Profiles{Home: s.profiles[vm].Home, Disks: maps.Clone(s.profiles[vm].Disks)}
}

// SetProfiles sets the storage policies of a virtual machine.
func (s *Machines) SetProfiles(vm vcsim.Ref, profiles Profiles) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[vm] = profiles
}

// keepProfiles keeps the storage policies that a clone gets.
// VMware: vSphere API reference, VirtualMachineRelocateSpec.profile is that of the home, and that of a disk locator is
// that of the disk. vcsim ignores both.
func (m *Methods) keepProfiles(clone vcsim.Ref, where types.VirtualMachineRelocateSpec) {
	made := Profiles{Home: profileOf(where.Profile), Disks: map[string]string{}}
	for _, d := range where.Disk {
		if id := profileOf(d.Profile); id != "" {
			made.Disks[strconv.Itoa(int(d.DiskId))] = id
		}
	}
	if made.Home != "" || len(made.Disks) > 0 {
		m.machines.SetProfiles(clone, made)
	}
}

func profileOf(specs []types.BaseVirtualMachineProfileSpec) string {
	for _, one := range specs {
		if defined, ok := one.(*types.VirtualMachineDefinedProfileSpec); ok {
			return defined.ProfileId
		}
	}
	return ""
}
