package world

import (
	"slices"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Report is what the control interface shows of a host: the truth, including what no vSphere call tells.
type Report struct {
	Name            string            `json:"name"`
	MOID            string            `json:"moid"`
	Connection      string            `json:"connection"`
	Maintenance     bool              `json:"maintenance"`
	RebootRequired  bool              `json:"reboot_required"`
	BootTime        string            `json:"boot_time"`
	ModulesStored   map[string]string `json:"modules_configured"`
	ModulesInEffect map[string]string `json:"modules_active"`
	GPUs            []GPUReport       `json:"gpus"`
}

// GPUReport is what one GPU is and who has it.
type GPUReport struct {
	PCI   string              `json:"pci"`
	Model string              `json:"model"`
	Type  string              `json:"graphics_type"`
	VGPUs []VGPUReport        `json:"vgpus"`
	Whole string              `json:"passthrough_to"` // the machine that has it by DirectPath
	Load  *datacentre.GPULoad `json:"load"`
}

// VGPUReport is one virtual GPU that is in use.
type VGPUReport struct {
	VM      string `json:"vm"`
	Profile string `json:"profile"`
}

// HostNames are the names of all hosts, sorted.
func (w *World) HostNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := []string{}
	for _, h := range w.hosts {
		names = append(names, h.spec.Name)
	}
	slices.Sort(names)
	return names
}

// Report is the host's state now.
func (h *Host) Report() Report {
	ctx := h.world.context()
	r := Report{Name: h.spec.Name, MOID: h.self.Value, ModulesStored: map[string]string{}, ModulesInEffect: map[string]string{}}
	ctx.WithLock(h.entity, func() {
		run := h.entity.Runtime
		r.Connection, r.Maintenance = string(run.ConnectionState), run.InMaintenanceMode
		r.RebootRequired, r.BootTime = h.entity.Summary.RebootRequired, run.BootTime.UTC().Format("2006-01-02T15:04:05.000Z")
	})
	for _, m := range h.moduleList() {
		r.ModulesStored[m.name], r.ModulesInEffect[m.name] = m.configured, m.active
	}
	r.GPUs = h.gpuReports()
	return r
}

func (h *Host) gpuReports() []GPUReport {
	h.mu.Lock()
	active, slots, loads := h.graphics.active, h.slots, h.loads
	h.mu.Unlock()
	out := []GPUReport{}
	for _, g := range h.kit.GPUs {
		r := GPUReport{PCI: g.PCI, Model: g.Model, Type: active[g.PCI], VGPUs: []VGPUReport{}}
		for _, s := range slots[g.PCI] {
			r.VGPUs = append(r.VGPUs, VGPUReport{VM: h.world.Name(s.vm), Profile: s.profile.Name})
		}
		if l, ok := loads[g.PCI]; ok {
			r.Load = &l
		}
		h.world.mu.Lock()
		holder := h.world.claims[claim{h.spec.Name, g.PCI}]
		h.world.mu.Unlock()
		r.Whole = h.world.Name(holder)
		out = append(out, r)
	}
	return out
}
