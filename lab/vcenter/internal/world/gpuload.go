package world

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// setLoad sets how much GPUs are used, by PCI address; nil means that nothing measures the GPU.
func (s *Graphics) setLoad(loads map[string]*datacentre.GPULoad) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]datacentre.GPULoad{}
	maps.Copy(next, s.loads)
	for pci, l := range loads {
		if !slices.ContainsFunc(s.host.kit.GPUs, func(g datacentre.GPU) bool { return g.PCI == pci }) {
			return fmt.Errorf("host %s has no GPU at %q", s.host.spec.Name, pci)
		}
		delete(next, pci)
		if l == nil {
			continue
		}
		if err := l.Check(); err != nil {
			return fmt.Errorf("host %s, GPU %s: %w", s.host.spec.Name, pci, err)
		}
		next[pci] = *l
	}
	s.loads = next
	return nil
}

// measured are the GPUs that NVIDIA's driver measures: it does not see those in DirectPath.
func (s *Graphics) measured(ctx *simulator.Context) []gauge {
	if !s.host.connected(ctx) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []gauge
	for _, g := range s.host.kit.GPUs {
		if l, ok := s.loads[g.PCI]; ok && s.offers(g) {
			out = append(out, gauge{instance: orText(l.Instance, g.PCI), load: l, capacityMB: s.host.sim.desc.GPUModels[g.Model].MemoryMB})
		}
	}
	return out
}

// gauge is one measured GPU under the name of its instance.
type gauge struct {
	instance   string
	load       datacentre.GPULoad
	capacityMB int64
}
