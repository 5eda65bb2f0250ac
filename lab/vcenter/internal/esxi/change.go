package esxi

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Change is a change of a host through the control interface; absent fields change nothing.
type Change struct {
	Alarm          *string                        `json:"alarm"`
	Connection     *string                        `json:"connection"`
	Maintenance    *bool                          `json:"maintenance"`
	Quarantine     *bool                          `json:"quarantine"`
	RebootRequired *bool                          `json:"reboot_required"`
	RebootSeconds  *float64                       `json:"reboot_seconds"`
	DriverSeconds  *float64                       `json:"driver_seconds"`
	VmotionSeconds *float64                       `json:"vmotion_seconds"`
	NeverReturns   *bool                          `json:"never_returns"`
	HostProfile    *string                        `json:"host_profile"`
	Traffic        *network.Traffic               `json:"traffic"`
	GPULoad        map[string]*datacentre.GPULoad `json:"gpu_load"`
	Reserved       map[string]int                 `json:"vgpu_reservations"`
}

// Apply changes the host as if another user or the hardware had changed it. The log of writes does not show it. Host
// profiles belong to the vCenter.
func (h *Host) Apply(c Change) error {
	ctx := h.Sim.Context()
	if c.Alarm != nil {
		if err := h.Sim.Alarm(ctx, h.Entity, *c.Alarm); err != nil {
			return err
		}
	}
	if c.Connection != nil {
		if err := h.connect(ctx, types.HostSystemConnectionState(*c.Connection)); err != nil {
			return err
		}
	}
	var changes []types.PropertyChange
	for path, value := range map[string]*bool{"runtime.inMaintenanceMode": c.Maintenance,
		"runtime.inQuarantineMode": c.Quarantine, "summary.rebootRequired": c.RebootRequired} {
		if value != nil {
			changes = append(changes, vcsim.Change(path, *value))
		}
	}
	h.Push(ctx, changes...)
	if c.Traffic != nil {
		if err := h.network.AddTraffic(*c.Traffic); err != nil {
			return err
		}
	}
	if err := h.Graphics.SetLoad(c.GPULoad); err != nil {
		return err
	}
	if err := h.Graphics.SetReservations(ctx, c.Reserved); err != nil {
		return err
	}
	h.setBehaviour(c)
	return nil
}

// setBehaviour sets the seconds of reboots, driver loads and vMotions, and whether the next reboot is the last.
func (h *Host) setBehaviour(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.RebootSeconds != nil {
		h.behaviour.rebootSeconds = *c.RebootSeconds
	}
	if c.DriverSeconds != nil {
		h.behaviour.driverSeconds = *c.DriverSeconds
	}
	if c.VmotionSeconds != nil {
		h.behaviour.vmotionSeconds = *c.VmotionSeconds
	}
	if c.NeverReturns != nil {
		h.behaviour.neverReturns = *c.NeverReturns
	}
}

// connect sets the connection state; a host that did not return from its reboot boots when it connects.
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
	h.Push(ctx, vcsim.Change("runtime.connectionState", state))
	return nil
}
