package world

// HostReport is what the control interface shows of a host: the truth, including what no vSphere call tells.
type HostReport struct {
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

// Report is the host's state now.
func (h *ESXi) Report() HostReport {
	ctx := h.sim.context()
	r := HostReport{Name: h.spec.Name, MOID: h.self.Value, ModulesStored: map[string]string{}, ModulesInEffect: map[string]string{}}
	ctx.WithLock(h.entity, func() {
		run := h.entity.Runtime
		r.Connection, r.Maintenance = string(run.ConnectionState), run.InMaintenanceMode
		r.RebootRequired, r.BootTime = h.entity.Summary.RebootRequired, run.BootTime.UTC().Format("2006-01-02T15:04:05.000Z")
	})
	for _, m := range h.modules.list() {
		r.ModulesStored[m.name], r.ModulesInEffect[m.name] = m.configured, m.active
	}
	r.GPUs = h.graphics.reports()
	return r
}
