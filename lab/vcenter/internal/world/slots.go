package world

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// slot is one vGPU of a GPU in use by a virtual machine.
type slot struct {
	vm      ref
	profile datacentre.Profile
}

// profileNamed finds a vGPU type among those that a GPU offers now. The caller holds the host's lock.
func (h *Host) profileNamed(g datacentre.GPU, name string) (datacentre.Profile, bool) {
	if !h.offers(g) || h.graphics.active[g.PCI] != string(types.HostGraphicsInfoGraphicsTypeSharedDirect) {
		return datacentre.Profile{}, false
	}
	for _, p := range h.world.profilesOf(g) {
		if p.Name == name {
			return p, true
		}
	}
	return datacentre.Profile{}, false
}

// room says whether a GPU has room for one more vGPU: enough memory, and one size for all unless sizes may be mixed.
// The caller holds the host's lock.
func (h *Host) room(g datacentre.GPU, p datacentre.Profile) bool {
	used := p.MemoryGB << 10
	for _, s := range h.slots[g.PCI] {
		used += s.profile.MemoryGB << 10
		if s.profile.MemoryGB != p.MemoryGB && p.Sharing == "timeSliced" && !h.mixed(g.PCI) {
			return false
		}
	}
	return used <= h.world.desc.GPUModels[g.Model].MemoryMB
}

func (h *Host) mixed(pci string) bool {
	return slices.ContainsFunc(h.graphics.config.DeviceType, func(d types.HostGraphicsConfigDeviceType) bool { return d.DeviceId == pci && d.VgpuMode == "mixedSize" })
}

// pick finds the GPU for a vGPU by the host's assignment policy. The caller holds the host's lock.
func (h *Host) pick(name string) (datacentre.GPU, datacentre.Profile, bool) {
	var best datacentre.GPU
	var profile datacentre.Profile
	found := false
	spread := h.graphics.config.SharedPassthruAssignmentPolicy == string(types.HostGraphicsConfigSharedPassthruAssignmentPolicyPerformance)
	for _, g := range h.kit.GPUs {
		p, offered := h.profileNamed(g, name)
		if !offered || !h.room(g, p) {
			continue
		}
		emptier := len(h.slots[g.PCI]) < len(h.slots[best.PCI])
		if !found || emptier == spread && len(h.slots[g.PCI]) != len(h.slots[best.PCI]) {
			best, profile, found = g, p, true
		}
	}
	return best, profile, found
}

// reserve takes a vGPU for each profile, all or none.
func (h *Host) reserve(ctx *simulator.Context, vm ref, profiles []string) types.BaseMethodFault {
	h.mu.Lock()
	before := h.slots
	h.slots = map[string][]slot{}
	for pci, s := range before {
		h.slots[pci] = slices.Clone(s)
	}
	for _, name := range profiles {
		g, p, ok := h.pick(name)
		if !ok {
			h.slots = before
			h.mu.Unlock()
			return new(types.InsufficientGraphicsResourcesFault)
		}
		h.slots[g.PCI] = append(h.slots[g.PCI], slot{vm, p})
	}
	h.mu.Unlock()
	if len(profiles) > 0 {
		h.showGraphics(ctx)
	}
	return nil
}

// release gives back all vGPUs of a virtual machine.
func (h *Host) release(ctx *simulator.Context, vm ref) {
	h.mu.Lock()
	next, changed := map[string][]slot{}, false
	for pci, s := range h.slots {
		next[pci] = slices.DeleteFunc(slices.Clone(s), func(x slot) bool { return x.vm == vm })
		changed = changed || len(next[pci]) != len(s)
	}
	h.slots = next
	h.mu.Unlock()
	if changed {
		h.showGraphics(ctx)
	}
}

// fitsOn says whether a virtual machine's vGPUs would find room.
func (h *Host) fitsOn(profiles []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	saved := h.slots
	defer func() { h.slots = saved }()
	h.slots = map[string][]slot{}
	for pci, s := range saved {
		h.slots[pci] = slices.Clone(s)
	}
	for _, name := range profiles {
		g, p, ok := h.pick(name)
		if !ok {
			return false
		}
		h.slots[g.PCI] = append(h.slots[g.PCI], slot{profile: p})
	}
	return true
}
