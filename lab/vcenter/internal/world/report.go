package world

import "slices"

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
	return r
}
