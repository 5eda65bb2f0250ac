package world

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// RelocateVMTask moves the machine; a running one takes as long as its host's vMotion takes, or as the listener says.
func (m *vmMethods) RelocateVMTask(ctx *simulator.Context, req *types.RelocateVM_Task) soap.HasFault {
	if req.Spec.Folder != nil || len(req.Spec.DeviceChange) > 0 || req.Spec.Service != nil {
		return &methods.RelocateVM_TaskBody{Fault_: simulator.Fault("The lab moves virtual machines between hosts, pools and datastores only.", &types.NotSupported{})}
	}
	t := m.run(ctx, "relocateVMTask", "VirtualMachine.relocate", func(j *job) (types.AnyType, types.BaseMethodFault) {
		return nil, m.relocate(j, req.Spec)
	})
	return &methods.RelocateVM_TaskBody{Res: &types.RelocateVM_TaskResponse{Returnval: t}}
}

// MigrateVMTask is the older call for the same.
func (m *vmMethods) MigrateVMTask(ctx *simulator.Context, req *types.MigrateVM_Task) soap.HasFault {
	t := m.run(ctx, "migrateVMTask", "VirtualMachine.migrate", func(j *job) (types.AnyType, types.BaseMethodFault) {
		if req.State != "" && (req.State == types.VirtualMachinePowerStatePoweredOn) != m.look(j.ctx).on {
			return nil, &types.InvalidPowerState{RequestedState: req.State}
		}
		return nil, m.relocate(j, types.VirtualMachineRelocateSpec{Host: req.Host, Pool: req.Pool})
	})
	return &methods.MigrateVM_TaskBody{Res: &types.MigrateVM_TaskResponse{Returnval: t}}
}

func (m *vmMethods) relocate(j *job, spec types.VirtualMachineRelocateSpec) types.BaseMethodFault {
	now := m.look(j.ctx)
	if spec.Host == nil || now.host == nil || *spec.Host == now.host.self {
		m.settle(j.ctx, spec)
		return nil
	}
	target := m.machines.hosts.of(*spec.Host)
	if target == nil {
		return &types.ManagedObjectNotFound{Obj: *spec.Host}
	}
	if f := refuseMove(j.ctx, now, target); f != nil {
		m.failed(j, now, target, f)
		return f
	}
	if now.on {
		if f := m.hotMove(j, now, target); f != nil {
			target.graphics.release(j.ctx, m.Self)
			m.failed(j, now, target, f)
			return f
		}
		now.host.graphics.release(j.ctx, m.Self)
	}
	m.settle(j.ctx, spec)
	m.sim.post(j.ctx, &types.VmMigratedEvent{VmEvent: m.eventOn(target, now), SourceHost: hostArgument(now.host.spec.Name, now.host.self),
		SourceDatacenter: m.sim.datacenter, SourceDatastore: m.sim.datastore}, j.task.Info.EventChainId)
	return nil
}

// refuseMove says why a machine cannot go to a host.
func refuseMove(ctx *simulator.Context, now machineNow, target *ESXi) types.BaseMethodFault {
	run := target.runtime(ctx)
	if run.InMaintenanceMode || run.ConnectionState != types.HostSystemConnectionStateConnected {
		return &types.InvalidHostState{Host: &target.self}
	}
	if !now.on {
		return nil
	}
	if f := now.usable(ctx); f != nil {
		return f
	}
	if now.directPath || (len(now.vgpus) > 0 && !hotMigration(ctx)) {
		words := "Migration was temporarily disabled due to another migration activity. vGPU hot migration is not enabled."
		if now.directPath {
			words = "The virtual machine uses a DirectPath I/O device, which ties it to its host."
		}
		f := new(types.VMotionNotSupported)
		f.FaultCause = &types.LocalizedMethodFault{Fault: &types.SystemErrorFault{Reason: words}, LocalizedMessage: words}
		return f
	}
	if !target.graphics.fitsOn(now.vgpus) {
		return new(types.InsufficientGraphicsResourcesFault)
	}
	return nil
}

// hotMove takes the time that a vMotion takes.
func (m *vmMethods) hotMove(j *job, now machineNow, target *ESXi) types.BaseMethodFault {
	if f := target.graphics.reserve(j.ctx, m.Self, now.vgpus); f != nil {
		return f
	}
	chain := j.task.Info.EventChainId
	m.sim.post(j.ctx, &types.VmBeingHotMigratedEvent{VmEvent: m.eventOn(now.host, now), DestHost: hostArgument(target.spec.Name, target.self),
		DestDatacenter: m.sim.datacenter, DestDatastore: m.sim.datastore}, chain)
	m.sim.post(j.ctx, &types.VmEmigratingEvent{VmEvent: m.eventOn(now.host, now)}, chain)
	order := Order{Op: "Relocate", VM: now.name, MOID: m.Self.Value, Source: now.host.spec.Name, Target: target.spec.Name}
	if handed, fault := m.machines.External.hand(j, order); handed {
		return fault
	}
	seconds := now.host.vmotionSeconds()
	const steps = 20
	for i := range int32(steps) {
		time.Sleep(time.Duration(seconds * float64(time.Second) / steps))
		j.progress(i * 95 / steps)
		switch {
		case j.cancelled():
			return new(types.RequestCanceled)
		case !now.host.connected(j.ctx) || !target.connected(j.ctx):
			return new(types.HostNotConnected)
		}
	}
	return nil
}

func (m *vmMethods) failed(j *job, now machineNow, target *ESXi, f types.BaseMethodFault) {
	reason := localized(f)
	reason.LocalizedMessage = orText(j.words, reason.LocalizedMessage)
	m.sim.post(j.ctx, &types.VmFailedMigrateEvent{VmEvent: m.eventOn(now.host, now), DestHost: hostArgument(target.spec.Name, target.self), Reason: reason,
		DestDatacenter: m.sim.datacenter, DestDatastore: m.sim.datastore}, j.task.Info.EventChainId)
}

func (m *vmMethods) eventOn(h *ESXi, now machineNow) types.VmEvent {
	e := h.event().Event
	e.Vm = &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: now.name}, Vm: m.Self}
	return types.VmEvent{Event: e}
}

// settle puts the machine where it belongs now: on the host, in the pool, on the datastore.
func (m *vmMethods) settle(ctx *simulator.Context, spec types.VirtualMachineRelocateSpec) {
	reg := m.sim.reg
	var host, pool, store ref
	ctx.WithLock(m.VirtualMachine, func() {
		host = *m.Runtime.Host
		if m.ResourcePool != nil {
			pool = *m.ResourcePool
		}
		if len(m.Datastore) > 0 {
			store = m.Datastore[0]
		}
	})
	var changes []types.PropertyChange
	if to := spec.Host; to != nil && *to != host {
		move(ctx, m.Self, reg.Get(host), reg.Get(*to), "vm", func(r mo.Reference) []ref { return r.(*simulator.HostSystem).Vm })
		changes = append(changes, change("runtime.host", to), change("summary.runtime.host", to))
	}
	if to := spec.Pool; to != nil && *to != pool && pool.Value != "" {
		move(ctx, m.Self, reg.Get(pool), reg.Get(*to), "vm", func(r mo.Reference) []ref { return r.(*simulator.ResourcePool).Vm })
		changes = append(changes, change("resourcePool", to))
	}
	if to := spec.Datastore; to != nil && *to != store && store.Value != "" {
		move(ctx, m.Self, reg.Get(store), reg.Get(*to), "vm", func(r mo.Reference) []ref { return r.(*simulator.Datastore).Vm })
		changes = append(changes, change("datastore", []ref{*to}))
	}
	if len(changes) > 0 {
		m.sim.update(ctx, m.VirtualMachine, changes...)
	}
}
