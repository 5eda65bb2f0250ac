package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// alarm sets or clears the one triggered alarm of an entity and shows it on the entity's cluster too.
func (s *Sim) alarm(ctx *simulator.Context, entity mo.Entity, color string) error {
	status := types.ManagedEntityStatus(color)
	if color == "none" {
		status = types.ManagedEntityStatusGreen
	}
	if !slices.Contains(status.Values(), status) {
		return fmt.Errorf("no alarm colour %q: red, yellow or none", color)
	}
	self := entity.Reference()
	s.setAlarm(ctx, entity, self, status)
	var parent *ref
	ctx.WithLock(entity, func() { parent = entity.Entity().Parent })
	if cluster, ok := s.reg.Get(*parent).(*simulator.ClusterComputeResource); ok && self.Type == "HostSystem" {
		s.setAlarm(ctx, cluster, self, status)
	}
	return nil
}

func (s *Sim) setAlarm(ctx *simulator.Context, on mo.Entity, of ref, status types.ManagedEntityStatus) {
	alarm := s.anyAlarm()
	ctx.WithLock(on, func() {
		states := slices.DeleteFunc(slices.Clone(on.Entity().TriggeredAlarmState), func(a types.AlarmState) bool { return a.Entity == of })
		if status != types.ManagedEntityStatusGreen {
			triggered := types.AlarmState{Key: "alarm-lab." + of.Value, Entity: of, Alarm: alarm, OverallStatus: status, Time: time.Now(), Acknowledged: types.NewBool(false)}
			states = append(states, triggered)
		}
		changes := []types.PropertyChange{change("triggeredAlarmState", states)}
		if on.Reference() == of {
			changes = append(changes, change("overallStatus", status))
		}
		ctx.Update(on, changes)
	})
}

// anyAlarm is an alarm definition to hang a triggered alarm on; vcsim has those of a new vCenter.
func (s *Sim) anyAlarm() ref {
	var best ref
	for _, a := range s.reg.AllReference("Alarm") {
		if r := a.Reference(); best.Value == "" || r.Value < best.Value {
			best = r
		}
	}
	return best
}
