package esxi

import (
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host/software"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Remediate brings the host to an image as vLCM does, and returns why that failed, or "". A host that was in
// maintenance mode before stays there.
// VMware: vSphere documentation, remediation of a host against the image of its cluster: maintenance mode,
// installation, reboot if needed.
// Ours: a host that was in maintenance mode stays there (unproven); no virtual machine is evacuated.
func (h *Host) Remediate(j *vcsim.Job, d software.Desired, patience time.Duration, progress func(int)) string {
	stays := h.Runtime(j.Ctx).InMaintenanceMode
	if !h.Connected(j.Ctx) {
		return "The host is not connected."
	}
	if !stays {
		if fault := h.enterMaintenance(j, h.Sim.Clock.Now(), patience); fault != nil {
			return "The host could not enter maintenance mode."
		}
	}
	progress(30)
	reboot, refusal := h.Software.Install(j.Ctx, d)
	if refusal != "" {
		return refusal
	}
	progress(60)
	if reboot {
		h.reboot(j.Ctx, h.Sim.Clock.Now())
	}
	if !h.Connected(j.Ctx) {
		return "The host did not return after its reboot."
	}
	progress(90)
	if !stays {
		h.Push(j.Ctx, vcsim.Change("runtime.inMaintenanceMode", false))
		h.Sim.Post(j.Ctx, &types.ExitMaintenanceModeEvent{HostEvent: h.Event()}, j.Task.Info.EventChainId)
	}
	return ""
}
