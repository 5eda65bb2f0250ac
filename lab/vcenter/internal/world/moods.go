package world

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// HostChange is what the control interface may do to a host; absent fields change nothing.
type HostChange struct {
	Alarm          *string                        `json:"alarm"`
	Connection     *string                        `json:"connection"`
	Maintenance    *bool                          `json:"maintenance"`
	Quarantine     *bool                          `json:"quarantine"`
	RebootRequired *bool                          `json:"reboot_required"`
	RebootSeconds  *float64                       `json:"reboot_seconds"`
	VmotionSeconds *float64                       `json:"vmotion_seconds"`
	NeverReturns   *bool                          `json:"never_returns"`
	HostProfile    *string                        `json:"host_profile"`
	Traffic        *Traffic                       `json:"traffic"`
	GPULoad        map[string]*datacentre.GPULoad `json:"gpu_load"`
}

// Apply changes the host as if the world had changed it: nothing is logged as a write.
func (h *Host) Apply(c HostChange) error {
	ctx := h.world.context()
	if c.Alarm != nil {
		if err := h.world.alarm(ctx, h.entity, *c.Alarm); err != nil {
			return err
		}
	}
	if c.Connection != nil {
		if err := h.connect(ctx, types.HostSystemConnectionState(*c.Connection)); err != nil {
			return err
		}
	}
	var changes []types.PropertyChange
	for path, value := range map[string]*bool{"runtime.inMaintenanceMode": c.Maintenance, "runtime.inQuarantineMode": c.Quarantine, "summary.rebootRequired": c.RebootRequired} {
		if value != nil {
			changes = append(changes, change(path, *value))
		}
	}
	h.push(ctx, changes...)
	if c.HostProfile != nil {
		h.world.attachProfile(ctx, h.self, *c.HostProfile)
	}
	if c.Traffic != nil {
		if err := h.grow(*c.Traffic); err != nil {
			return err
		}
	}
	if err := h.setLoad(c.GPULoad); err != nil {
		return err
	}
	h.moody(c)
	return nil
}

func (h *Host) moody(c HostChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.RebootSeconds != nil {
		h.moods.rebootSeconds = *c.RebootSeconds
	}
	if c.VmotionSeconds != nil {
		h.moods.vmotionSeconds = *c.VmotionSeconds
	}
	if c.NeverReturns != nil {
		h.moods.neverReturns = *c.NeverReturns
	}
}

// connect sets the connection; a host that never returned from its reboot boots when it is connected again.
func (h *Host) connect(ctx *simulator.Context, state types.HostSystemConnectionState) error {
	if !slices.Contains(state.Values(), state) {
		return fmt.Errorf("no connection state %q", state)
	}
	h.mu.Lock()
	down := h.down
	h.mu.Unlock()
	if state == types.HostSystemConnectionStateConnected && down {
		h.boot(ctx)
		return nil
	}
	h.push(ctx, change("runtime.connectionState", state))
	return nil
}
