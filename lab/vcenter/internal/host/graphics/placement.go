package graphics

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// slot is one vGPU that a virtual machine uses, or that is reserved without a user.
type slot struct {
	vm      vcsim.Ref
	profile datacentre.Profile
}

// profileNamed returns a vGPU type that a GPU offers now, which requires the active graphics type sharedDirect. The
// caller holds the lock.
// VMware: NVIDIA AI Enterprise user guide for vSphere: without Shared Direct, a power-on fails because of
// insufficient graphics resources.
func (s *System) profileNamed(g datacentre.GPU, name string) (datacentre.Profile, bool) {
	if !s.offers(g) || s.active[g.PCI] != string(types.HostGraphicsInfoGraphicsTypeSharedDirect) {
		return datacentre.Profile{}, false
	}
	for _, p := range s.profilesOf(g) {
		if p.Name == name {
			return p, true
		}
	}
	return datacentre.Profile{}, false
}

// hasRoom reports whether a GPU has room for another vGPU: enough memory, and the same size for all unless vgpuMode
// is mixedSize. The caller holds the lock.
// VMware: NVIDIA vGPU user guide: equal-size time-sliced vGPUs on one GPU; vSphere API reference 8.0.3, vgpuMode.
func (s *System) hasRoom(g datacentre.GPU, p datacentre.Profile) bool {
	used := p.MemoryGB << 10
	for _, use := range s.slots[g.PCI] {
		used += use.profile.MemoryGB << 10
		if use.profile.MemoryGB != p.MemoryGB && p.Sharing == "timeSliced" && !s.mixedSizes(g.PCI) {
			return false
		}
	}
	return used <= s.host.Sim.Description.GPUModels[g.Model].MemoryMB
}

func (s *System) mixedSizes(pci string) bool {
	return slices.ContainsFunc(s.config.DeviceType, func(d types.HostGraphicsConfigDeviceType) bool {
		return d.DeviceId == pci && d.VgpuMode == "mixedSize"
	})
}

// choose returns the GPU for a vGPU according to the assignment policy of the host. The caller holds the lock.
// VMware: vSphere API reference, sharedPassthruAssignmentPolicy: performance spreads, consolidation fills one GPU
// first.
func (s *System) choose(name string) (datacentre.GPU, datacentre.Profile, bool) {
	var best datacentre.GPU
	var profile datacentre.Profile
	found := false
	spread := s.config.SharedPassthruAssignmentPolicy == string(
		types.HostGraphicsConfigSharedPassthruAssignmentPolicyPerformance)
	for _, g := range s.host.Hardware.GPUs {
		p, offered := s.profileNamed(g, name)
		if !offered || !s.hasRoom(g, p) {
			continue
		}
		emptier := len(s.slots[g.PCI]) < len(s.slots[best.PCI])
		if !found || emptier == spread && len(s.slots[g.PCI]) != len(s.slots[best.PCI]) {
			best, profile, found = g, p, true
		}
	}
	return best, profile, found
}

// Reserve reserves a vGPU of each type, all or none. Without room it returns InsufficientGraphicsResourcesFault.
// VMware: NVIDIA AI Enterprise user guide for vSphere quotes the message of this fault.
func (s *System) Reserve(ctx *simulator.Context, vm vcsim.Ref, profiles []string) vcsim.Fault {
	s.mu.Lock()
	before := s.slots
	s.slots = cloned(before)
	for _, name := range profiles {
		g, p, ok := s.choose(name)
		if !ok {
			s.slots = before
			s.mu.Unlock()
			return new(types.InsufficientGraphicsResourcesFault)
		}
		s.slots[g.PCI] = append(s.slots[g.PCI], slot{vm, p})
	}
	s.mu.Unlock()
	if len(profiles) > 0 {
		s.show(ctx)
	}
	return nil
}

// Release releases all vGPUs of a virtual machine.
func (s *System) Release(ctx *simulator.Context, vm vcsim.Ref) {
	s.mu.Lock()
	next, changed := map[string][]slot{}, false
	for pci, uses := range s.slots {
		next[pci] = slices.DeleteFunc(slices.Clone(uses), func(use slot) bool { return use.vm == vm })
		changed = changed || len(next[pci]) != len(uses)
	}
	s.slots = next
	s.mu.Unlock()
	if changed {
		s.show(ctx)
	}
}

// Users returns the virtual machines with vGPUs on a GPU, once for each vGPU.
func (s *System) Users(pci string) []vcsim.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []vcsim.Ref
	for _, use := range s.slots[pci] {
		if !use.reserved() {
			out = append(out, use.vm)
		}
	}
	return out
}

// FitsOn reports whether there is room for the vGPUs of a virtual machine.
func (s *System) FitsOn(profiles []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.slots
	defer func() { s.slots = saved }()
	s.slots = cloned(saved)
	for _, name := range profiles {
		g, p, ok := s.choose(name)
		if !ok {
			return false
		}
		s.slots[g.PCI] = append(s.slots[g.PCI], slot{profile: p})
	}
	return true
}
