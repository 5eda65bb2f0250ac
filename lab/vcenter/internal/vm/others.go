package vm

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// MoveByDRS starts a move that no client requested.
// VMware: govmomi, simulator/vpx/task_manager.go: the description Drm.ExecuteVMotionLRO; vSphere API reference,
// TaskReasonSystem.
// Ours: the lab's DRS never starts a move itself; the control interface triggers it.
func (m *Methods) MoveByDRS(target vcsim.Ref) {
	ctx := m.sim.Context()
	m.run(ctx, "executeVMotionLRO", "Drm.ExecuteVMotionLRO", func(j *vcsim.Job) (any, vcsim.Fault) {
		m.sim.Update(j.Ctx, j.Task, vcsim.Change("info.reason", &types.TaskReasonSystem{}))
		return nil, m.relocate(j, types.VirtualMachineRelocateSpec{Host: &target})
	})
}

// Vanish removes a virtual machine in any state from the inventory, as other clients may between two calls.
// Ours: a running one is removed too, without events.
func (m *Methods) Vanish() error {
	ctx := m.sim.Context()
	now := m.read(ctx)
	if now.on {
		now.host.Graphics.Release(ctx, m.Self)
		ctx.WithLock(m.VirtualMachine, func() {
			m.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOff
			m.Summary.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOff
		})
	}
	if f := m.VirtualMachine.UnregisterVM(ctx, &types.UnregisterVM{This: m.Self}).Fault(); f != nil {
		return fmt.Errorf("%s: %s", now.name, f.String)
	}
	cluster.RemoveFromRules(ctx, m.Self)
	return nil
}

// MarkAsTemplate makes the virtual machine a template, which is in no resource pool.
// VMware: vSphere API reference, VirtualMachine.resourcePool: not set for a template. vcsim leaves the template in the
// list of its pool, also after it was deleted.
func (m *Methods) MarkAsTemplate(ctx *simulator.Context, req *types.MarkAsTemplate) soap.HasFault {
	pool := m.ResourcePool
	body := m.VirtualMachine.MarkAsTemplate(req)
	if pool == nil || body.Fault() != nil {
		return body
	}
	if p, ok := ctx.Map.Get(*pool).(*simulator.ResourcePool); ok {
		ctx.WithLock(p, func() { ctx.Map.RemoveReference(ctx, p, &p.Vm, m.Self) })
	}
	return body
}
