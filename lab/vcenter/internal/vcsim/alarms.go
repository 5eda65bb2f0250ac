package vcsim

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Alarm sets or clears the triggered alarm of an entity, and for a host also shows it on its cluster.
// VMware: vSphere API reference, ManagedEntity.triggeredAlarmState, overallStatus: a parent shows the alarms of its
// children.
// Ours: one alarm for each entity, set by the control interface.
func (s *Sim) Alarm(ctx *simulator.Context, entity mo.Entity, color string) error {
	status := types.ManagedEntityStatus(color)
	if color == "none" {
		status = types.ManagedEntityStatusGreen
	}
	if !slices.Contains(status.Values(), status) {
		return fmt.Errorf("no alarm colour %q: red, yellow or none", color)
	}
	self := entity.Reference()
	s.setAlarm(ctx, entity, self, status)
	var parent *Ref
	ctx.WithLock(entity, func() { parent = entity.Entity().Parent })
	if cluster, ok := s.Registry.Get(*parent).(*simulator.ClusterComputeResource); ok && self.Type == "HostSystem" {
		s.setAlarm(ctx, cluster, self, status)
	}
	return nil
}

func (s *Sim) setAlarm(ctx *simulator.Context, on mo.Entity, of Ref, status types.ManagedEntityStatus) {
	alarm := s.anyAlarm()
	ctx.WithLock(on, func() {
		states := slices.DeleteFunc(slices.Clone(on.Entity().TriggeredAlarmState), func(a types.AlarmState) bool {
			return a.Entity == of
		})
		if status != types.ManagedEntityStatusGreen {
			triggered := types.AlarmState{Key: "alarm-lab." + of.Value, Entity: of, Alarm: alarm,
				OverallStatus: status, Time: s.Now(), Acknowledged: types.NewBool(false)}
			states = append(states, triggered)
		}
		changes := []types.PropertyChange{Change("triggeredAlarmState", states)}
		if on.Reference() == of {
			changes = append(changes, Change("overallStatus", status))
		}
		ctx.Update(on, changes)
	})
}

// anyAlarm returns the first alarm definition; vcsim has those of a new vCenter.
func (s *Sim) anyAlarm() Ref {
	var best Ref
	for _, a := range s.Registry.AllReference("Alarm") {
		if r := a.Reference(); best.Value == "" || r.Value < best.Value {
			best = r
		}
	}
	return best
}
