package graphics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// SetLoad sets the load of GPUs by PCI address; nil stops the measurement of a GPU.
func (s *System) SetLoad(loads map[string]*datacentre.GPULoad) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]datacentre.GPULoad{}
	maps.Copy(next, s.loads)
	for pci, l := range loads {
		if !slices.ContainsFunc(s.host.Hardware.GPUs, func(g datacentre.GPU) bool { return g.PCI == pci }) {
			return fmt.Errorf("host %s has no GPU at %q", s.host.Spec.Name, pci)
		}
		delete(next, pci)
		if l == nil {
			continue
		}
		if err := l.Check(); err != nil {
			return fmt.Errorf("host %s, GPU %s: %w", s.host.Spec.Name, pci, err)
		}
		next[pci] = *l
	}
	s.loads = next
	return nil
}

// Measured returns the GPUs that NVIDIA's driver measures on a connected host; it does not measure GPUs in
// DirectPath.
// Ours: NVIDIA's driver does not see a GPU in DirectPath, so it has no counters (unproven).
func (s *System) Measured(ctx *simulator.Context) []gauge {
	if !s.host.Connected(ctx) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []gauge
	for _, g := range s.host.Hardware.GPUs {
		if l, ok := s.loads[g.PCI]; ok && s.offers(g) {
			out = append(out, gauge{Instance: cmp.Or(l.Instance, g.PCI), Load: l,
				CapacityMB: s.host.Sim.Description.GPUModels[g.Model].MemoryMB})
		}
	}
	return out
}

// gauge is a measured GPU with the instance name of its counters.
type gauge struct {
	Instance   string
	Load       datacentre.GPULoad
	CapacityMB int64
}
