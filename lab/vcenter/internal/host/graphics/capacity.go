package graphics

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Capacity is the number of vGPUs of one type on a host: in use, still possible, possible on the empty host, and
// reserved without a user.
type Capacity struct{ Consumed, Remaining, Max, Unused int32 }

// Capacity returns the capacity for a vGPU type, which is 0 if the host does not offer it.
func (s *System) Capacity(name string) Capacity {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.slots
	defer func() { s.slots = saved }()
	var c Capacity
	for _, uses := range saved {
		for _, use := range uses {
			switch {
			case use.profile.Name != name:
			case use.reserved():
				c.Unused++
			default:
				c.Consumed++
			}
		}
	}
	s.slots = cloned(saved)
	c.Remaining = s.fill(name)
	s.slots = map[string][]slot{}
	c.Max = s.fill(name)
	return c
}

// fill adds vGPUs of a type until the host has no room for another one. The caller holds the lock.
func (s *System) fill(name string) int32 {
	for n := int32(0); ; n++ {
		g, p, ok := s.choose(name)
		if !ok {
			return n
		}
		s.slots[g.PCI] = append(s.slots[g.PCI], slot{profile: p})
	}
}

// SetReservations reserves vGPUs by type, for no virtual machine of this data centre; 0 ends the reservation of a
// type.
func (s *System) SetReservations(ctx *simulator.Context, counts map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if err := s.setReservation(name, counts[name]); err != nil {
			return err
		}
	}
	if len(counts) > 0 {
		s.show(ctx)
	}
	return nil
}

func (s *System) setReservation(name string, count int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.slots
	s.slots = cloned(before)
	for pci, uses := range s.slots {
		s.slots[pci] = slices.DeleteFunc(uses, func(use slot) bool {
			return use.reserved() && use.profile.Name == name
		})
	}
	for range count {
		g, p, ok := s.choose(name)
		if !ok {
			s.slots = before
			return fmt.Errorf("no room to reserve %d of %s", count, name)
		}
		s.slots[g.PCI] = append(s.slots[g.PCI], slot{profile: p})
	}
	return nil
}

// reserved reports whether a slot belongs to a reservation without a user.
func (s slot) reserved() bool { return s.vm.Value == "" }

func cloned(slots map[string][]slot) map[string][]slot {
	out := map[string][]slot{}
	for pci, uses := range slots {
		out[pci] = slices.Clone(uses)
	}
	return out
}

// ProfileOf returns a vGPU type of any GPU model of the data centre.
func ProfileOf(desc *datacentre.Datacentre, name string) (datacentre.Profile, bool) {
	for _, m := range desc.GPUModels {
		for _, p := range m.Profiles {
			if p.Name == name {
				return p, true
			}
		}
	}
	return datacentre.Profile{}, false
}

// Modes returns the mode of a GPU in the names of vSphere 9.1, and the modes that it could have.
func (s *System) Modes(g datacentre.GPU) (mode string, possible []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	possible = []string{"host", "directPath"}
	if s.loaded && len(s.profilesOf(g)) > 0 {
		possible = append(possible, "vGpuSameSize")
		if !g.MIG {
			possible = append(possible, "vGpuMixedSize")
		}
	}
	switch {
	case s.pci.Active(g.PCI):
		return "directPath", possible
	case s.active[g.PCI] != string(types.HostGraphicsInfoGraphicsTypeSharedDirect):
		return "host", possible
	case s.mixedSizes(g.PCI):
		return "vGpuMixedSize", possible
	}
	return "vGpuSameSize", possible
}
