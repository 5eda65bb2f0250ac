package vcsim

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// ShowAttributes sends the custom attributes of an entity to watchers, and shows them in its summary.
// VMware: vSphere API reference, VirtualMachineSummary.customValue, HostListSummary.customValue. vcsim leaves both
// empty.
func (s *Sim) ShowAttributes(ctx *simulator.Context, on Ref) {
	entity, ok := s.Registry.Get(on).(mo.Entity)
	if !ok {
		return
	}
	ctx.WithLock(entity, func() {
		values := slices.Clone(entity.Entity().CustomValue)
		if len(values) == 0 {
			values = nil // unset, like before the first value
		}
		changes := []types.PropertyChange{Change("customValue", values)}
		if on.Type == "VirtualMachine" || on.Type == "HostSystem" {
			changes = append(changes, Change("summary.customValue", values))
		}
		ctx.Update(entity, changes)
	})
}
