package graphics

import "dml.vsphere/lab/vcenter/internal/datacentre"

// GPUReport is the state of one GPU and its users.
type GPUReport struct {
	PCI   string              `json:"pci"`
	Model string              `json:"model"`
	Type  string              `json:"graphics_type"`
	VGPUs []VGPUReport        `json:"vgpus"`
	Whole string              `json:"passthrough_to"` // the virtual machine that uses it with DirectPath
	Load  *datacentre.GPULoad `json:"load"`
}

// VGPUReport is one virtual GPU that is in use.
type VGPUReport struct {
	VM      string `json:"vm"`
	Profile string `json:"profile"`
}

// Reports returns the GPUs of the host and the virtual machines that use them.
func (s *System) Reports() []GPUReport {
	s.mu.Lock()
	active, slots, loads := s.active, s.slots, s.loads
	s.mu.Unlock()
	out := []GPUReport{}
	for _, g := range s.host.Hardware.GPUs {
		r := GPUReport{PCI: g.PCI, Model: g.Model, Type: active[g.PCI], VGPUs: []VGPUReport{}}
		for _, use := range slots[g.PCI] {
			if !use.reserved() {
				r.VGPUs = append(r.VGPUs, VGPUReport{VM: s.host.Sim.Name(use.vm), Profile: use.profile.Name})
			}
		}
		if l, ok := loads[g.PCI]; ok {
			r.Load = &l
		}
		r.Whole = s.host.Sim.Name(s.pci.Holder(g.PCI))
		out = append(out, r)
	}
	return out
}
