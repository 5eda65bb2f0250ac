package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
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

// alarm sets or clears the one triggered alarm of an entity and shows it on the entity's cluster too.
func (w *World) alarm(ctx *simulator.Context, entity mo.Entity, color string) error {
	status := types.ManagedEntityStatus(color)
	if color == "none" {
		status = types.ManagedEntityStatusGreen
	}
	if !slices.Contains(status.Values(), status) {
		return fmt.Errorf("no alarm colour %q: red, yellow or none", color)
	}
	self := entity.Reference()
	w.setAlarm(ctx, entity, self, status)
	var parent *ref
	ctx.WithLock(entity, func() { parent = entity.Entity().Parent })
	if cluster, ok := w.reg.Get(*parent).(*simulator.ClusterComputeResource); ok && self.Type == "HostSystem" {
		w.setAlarm(ctx, cluster, self, status)
	}
	return nil
}

func (w *World) setAlarm(ctx *simulator.Context, on mo.Entity, of ref, status types.ManagedEntityStatus) {
	alarm := w.anyAlarm()
	ctx.WithLock(on, func() {
		states := slices.DeleteFunc(slices.Clone(on.Entity().TriggeredAlarmState), func(s types.AlarmState) bool { return s.Entity == of })
		if status != types.ManagedEntityStatusGreen {
			s := types.AlarmState{Key: "alarm-lab." + of.Value, Entity: of, Alarm: alarm, OverallStatus: status, Time: time.Now(), Acknowledged: types.NewBool(false)}
			states = append(states, s)
		}
		changes := []types.PropertyChange{change("triggeredAlarmState", states)}
		if on.Reference() == of {
			changes = append(changes, change("overallStatus", status))
		}
		ctx.Update(on, changes)
	})
}

// anyAlarm is an alarm definition to hang a triggered alarm on; vcsim has those of a new vCenter.
func (w *World) anyAlarm() ref {
	var best ref
	for _, a := range w.reg.AllReference("Alarm") {
		if r := a.Reference(); best.Value == "" || r.Value < best.Value {
			best = r
		}
	}
	return best
}
