package esxi

import "dml.vsphere/lab/vcenter/internal/host/graphics"

// Report is the state of a host in the control interface, including state that no vSphere call shows.
type Report struct {
	Name            string               `json:"name"`
	MOID            string               `json:"moid"`
	Connection      string               `json:"connection"`
	Maintenance     bool                 `json:"maintenance"`
	RebootRequired  bool                 `json:"reboot_required"`
	BootTime        string               `json:"boot_time"`
	ModulesStored   map[string]string    `json:"modules_configured"`
	ModulesInEffect map[string]string    `json:"modules_active"`
	GPUs            []graphics.GPUReport `json:"gpus"`
}

// Report returns the current state of the host.
func (h *Host) Report() Report {
	ctx := h.Sim.Context()
	r := Report{Name: h.Spec.Name, MOID: h.Self.Value, ModulesStored: map[string]string{},
		ModulesInEffect: map[string]string{}}
	ctx.WithLock(h.Entity, func() {
		run := h.Entity.Runtime
		r.Connection, r.Maintenance = string(run.ConnectionState), run.InMaintenanceMode
		r.RebootRequired, r.BootTime = h.Entity.Summary.RebootRequired,
			run.BootTime.UTC().Format("2006-01-02T15:04:05.000Z")
	})
	for _, m := range h.modules.List() {
		r.ModulesStored[m.Name], r.ModulesInEffect[m.Name] = m.Configured, m.Active
	}
	r.GPUs = h.Graphics.Reports()
	return r
}
