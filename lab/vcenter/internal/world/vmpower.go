package world

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// PowerOnVMTask powers the machine on if its host has the vGPUs it wants.
func (m *vmMethods) PowerOnVMTask(ctx *simulator.Context, req *types.PowerOnVM_Task) soap.HasFault {
	t := m.run(ctx, "powerOnVMTask", "VirtualMachine.powerOn", func(j *job) (types.AnyType, types.BaseMethodFault) {
		return m.powerOn(j, req)
	})
	return &methods.PowerOnVM_TaskBody{Res: &types.PowerOnVM_TaskResponse{Returnval: t}}
}

func (m *vmMethods) powerOn(j *job, req *types.PowerOnVM_Task) (types.AnyType, types.BaseMethodFault) {
	now := m.look(j.ctx)
	if f := now.refuse(true); f != nil {
		return nil, f
	}
	if f := now.usable(j.ctx); f != nil {
		return nil, f
	}
	if now.host != nil {
		if now.host.runtime(j.ctx).InMaintenanceMode {
			return nil, new(types.InvalidState)
		}
		// machines of the description run from the start, whatever their host can do
		if f := now.host.graphics.reserve(j.ctx, m.Self, now.vgpus); f != nil && m.sim.built.Load() {
			return nil, f
		}
		if f := m.refuseStart(j, now); f != nil && m.sim.built.Load() {
			now.host.graphics.release(j.ctx, m.Self)
			return nil, f
		}
	}
	result, fault := m.handOr(j, "PowerOn", now, func() (types.AnyType, types.BaseMethodFault) {
		return m.stock(j, func(c *simulator.Context) soap.HasFault { return m.VirtualMachine.PowerOnVMTask(c, req) },
			func(b soap.HasFault) ref { return b.(*methods.PowerOnVM_TaskBody).Res.Returnval })
	})
	if fault != nil && now.host != nil {
		now.host.graphics.release(j.ctx, m.Self)
		now.host.pci.release(m.Self)
	}
	if fault == nil {
		m.runsSince(j.ctx, time.Now())
		m.boot(j.ctx)
	}
	return result, fault
}

// runsSince notes when the machine was powered on.
func (m *vmMethods) runsSince(ctx *simulator.Context, when time.Time) {
	began := when.UTC()
	m.sim.update(ctx, m.VirtualMachine, change("runtime.bootTime", began), change("summary.runtime.bootTime", began))
}

// handOr hands an operation out, if it is to be, and then lets vcsim do its part.
func (m *vmMethods) handOr(j *job, op string, now machineNow, then func() (types.AnyType, types.BaseMethodFault)) (types.AnyType, types.BaseMethodFault) {
	order := Order{Op: op, VM: now.name, MOID: m.Self.Value, Source: now.hostName(), Target: now.hostName()}
	if _, fault := m.machines.External.hand(j, order); fault != nil {
		return nil, fault
	}
	return then()
}

// PowerOffVMTask powers the machine off and gives its vGPUs back.
func (m *vmMethods) PowerOffVMTask(ctx *simulator.Context, req *types.PowerOffVM_Task) soap.HasFault {
	t := m.run(ctx, "powerOffVMTask", "VirtualMachine.powerOff", func(j *job) (types.AnyType, types.BaseMethodFault) { return m.powerOff(j, req) })
	return &methods.PowerOffVM_TaskBody{Res: &types.PowerOffVM_TaskResponse{Returnval: t}}
}

func (m *vmMethods) powerOff(j *job, req *types.PowerOffVM_Task) (types.AnyType, types.BaseMethodFault) {
	now := m.look(j.ctx)
	if f := now.refuse(false); f != nil {
		return nil, f
	}
	if f := now.usable(j.ctx); f != nil {
		return nil, f
	}
	result, fault := m.handOr(j, "PowerOff", now, func() (types.AnyType, types.BaseMethodFault) {
		return m.stock(j, func(c *simulator.Context) soap.HasFault { return m.VirtualMachine.PowerOffVMTask(c, req) },
			func(b soap.HasFault) ref { return b.(*methods.PowerOffVM_TaskBody).Res.Returnval })
	})
	if fault == nil {
		m.stopped(j.ctx, now)
	}
	return result, fault
}

// stopped is what follows when a machine no longer runs.
func (m *vmMethods) stopped(ctx *simulator.Context, now machineNow) {
	if now.host != nil {
		now.host.graphics.release(ctx, m.Self)
		now.host.pci.release(m.Self)
	}
	m.setGuest(ctx, "", "")
}

// ResetVMTask resets the machine, which keeps its vGPUs.
func (m *vmMethods) ResetVMTask(ctx *simulator.Context, req *types.ResetVM_Task) soap.HasFault {
	t := m.run(ctx, "resetVMTask", "VirtualMachine.reset", func(j *job) (types.AnyType, types.BaseMethodFault) {
		now := m.look(j.ctx)
		if !now.on {
			return nil, now.refuse(false)
		}
		return m.handOr(j, "Reset", now, func() (types.AnyType, types.BaseMethodFault) {
			return m.stock(j, func(c *simulator.Context) soap.HasFault { return m.VirtualMachine.ResetVMTask(c, req) },
				func(b soap.HasFault) ref { return b.(*methods.ResetVM_TaskBody).Res.Returnval })
		})
	})
	return &methods.ResetVM_TaskBody{Res: &types.ResetVM_TaskResponse{Returnval: t}}
}

// ShutdownGuest asks the guest to power off, which it does.
func (m *vmMethods) ShutdownGuest(ctx *simulator.Context, _ *types.ShutdownGuest) soap.HasFault {
	body := new(methods.ShutdownGuestBody)
	if m.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn {
		body.Fault_ = soapFault(&types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: m.Runtime.PowerState})
		return body
	}
	m.run(ctx, "powerOffVMTask", "VirtualMachine.powerOff", func(j *job) (types.AnyType, types.BaseMethodFault) {
		return m.powerOff(j, &types.PowerOffVM_Task{This: m.Self})
	})
	body.Res = new(types.ShutdownGuestResponse)
	return body
}

// DestroyTask removes a machine that is off.
func (m *vmMethods) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	t := m.run(ctx, "destroyTask", "VirtualMachine.destroy", func(j *job) (types.AnyType, types.BaseMethodFault) {
		now := m.look(j.ctx)
		if now.on {
			return nil, &types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: types.VirtualMachinePowerStatePoweredOn}
		}
		result, fault := m.handOr(j, "Destroy", now, func() (types.AnyType, types.BaseMethodFault) {
			return m.stock(j, func(c *simulator.Context) soap.HasFault { return m.VirtualMachine.DestroyTask(c, req) },
				func(b soap.HasFault) ref { return b.(*methods.Destroy_TaskBody).Res.Returnval })
		})
		if fault == nil {
			forgetMachine(j.ctx, m.Self)
		}
		return result, fault
	})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: t}}
}

// UnregisterVM lets a machine that is off go, and its cluster forget it.
func (m *vmMethods) UnregisterVM(ctx *simulator.Context, req *types.UnregisterVM) soap.HasFault {
	body := m.VirtualMachine.UnregisterVM(ctx, req)
	if body.(*methods.UnregisterVMBody).Fault_ == nil {
		forgetMachine(ctx, m.Self)
	}
	return body
}
