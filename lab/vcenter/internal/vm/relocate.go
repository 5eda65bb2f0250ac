package vm

import (
	"cmp"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/options"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// RelocateVMTask moves the virtual machine between hosts, pools and datastores; the move of a running one takes
// vmotion_seconds, or the time that the listener determines.
// VMware: pyVmomi 9.1, faults of RelocateVM_Task: InvalidState, MigrationFault, InsufficientResourcesFault. Events
// VmBeingHotMigratedEvent, VmEmigratingEvent, VmMigratedEvent, VmFailedMigrateEvent with the chain id of the task.
func (m *Methods) RelocateVMTask(ctx *simulator.Context, req *types.RelocateVM_Task) soap.HasFault {
	if req.Spec.Folder != nil || len(req.Spec.DeviceChange) > 0 || req.Spec.Service != nil {
		return &methods.RelocateVM_TaskBody{Fault_: simulator.Fault(
			"The lab moves virtual machines between hosts, pools and datastores only.", &types.NotSupported{})}
	}
	t := m.run(ctx, "relocateVMTask", "VirtualMachine.relocate", func(j *vcsim.Job) (any, vcsim.Fault) {
		return nil, m.relocate(j, req.Spec)
	})
	return &methods.RelocateVM_TaskBody{Res: &types.RelocateVM_TaskResponse{Returnval: t}}
}

// MigrateVMTask is the older call for a move to a host.
// VMware: vSphere API reference, VirtualMachine.MigrateVM_Task: state guards the power state.
func (m *Methods) MigrateVMTask(ctx *simulator.Context, req *types.MigrateVM_Task) soap.HasFault {
	t := m.run(ctx, "migrateVMTask", "VirtualMachine.migrate", func(j *vcsim.Job) (any, vcsim.Fault) {
		if req.State != "" && (req.State == types.VirtualMachinePowerStatePoweredOn) != m.read(j.Ctx).on {
			return nil, &types.InvalidPowerState{RequestedState: req.State}
		}
		return nil, m.relocate(j, types.VirtualMachineRelocateSpec{Host: req.Host, Pool: req.Pool})
	})
	return &methods.MigrateVM_TaskBody{Res: &types.MigrateVM_TaskResponse{Returnval: t}}
}

func (m *Methods) relocate(j *vcsim.Job, spec types.VirtualMachineRelocateSpec) vcsim.Fault {
	now := m.read(j.Ctx)
	if spec.Host == nil || now.host == nil || *spec.Host == now.host.Self {
		m.setPlace(j.Ctx, spec)
		return nil
	}
	target := m.machines.hosts.ByRef(*spec.Host)
	if target == nil {
		return &types.ManagedObjectNotFound{Obj: *spec.Host}
	}
	if f := cmp.Or(m.refusePool(j.Ctx, spec.Pool, target), refuseMove(j.Ctx, now, target)); f != nil {
		m.postFailure(j, now, target, f)
		return f
	}
	if now.on {
		if f := m.hotMove(j, now, target); f != nil {
			target.Graphics.Release(j.Ctx, m.Self)
			target.PCI.Release(m.Self)
			m.postFailure(j, now, target, f)
			return f
		}
		now.host.Graphics.Release(j.Ctx, m.Self)
		now.host.PCI.Release(m.Self)
		m.forgetBoot(j.Ctx)
	}
	m.setPlace(j.Ctx, spec)
	m.sim.Post(j.Ctx, &types.VmMigratedEvent{VmEvent: m.eventOn(target, now),
		SourceHost:       vcsim.HostArgument(now.host.Spec.Name, now.host.Self),
		SourceDatacenter: m.sim.Datacenter, SourceDatastore: m.sim.Datastore}, j.Task.Info.EventChainId)
	return nil
}

// The words of VirtualMachineConfigSpecEncryptedVMotionModes.
const required, disabled = "required", "disabled"

// refusePool returns the fault of a move to a host of another cluster than that of the resource pool.
// VMware: vSphere API reference, VirtualMachineRelocateSpec.pool: without it, the present pool is used.
// Ours: InvalidArgument of spec.pool as the fault (unproven).
func (m *Methods) refusePool(ctx *simulator.Context, given *vcsim.Ref, target *esxi.Host) vcsim.Fault {
	_, pool, _ := m.place(ctx)
	if given != nil {
		pool = *given
	}
	p, isPool := m.sim.Registry.Get(pool).(*simulator.ResourcePool)
	h, isHost := m.sim.Registry.Get(target.Self).(*simulator.HostSystem)
	if isPool && isHost && p.Owner != *h.Parent {
		return &types.InvalidArgument{InvalidProperty: "spec.pool"}
	}
	return nil
}

// evcModes are some modes of Intel's processors, each with the features of the ones before.
// VMware: KB 1003212, EVC modes of Intel processors.
var evcModes = []string{"intel-haswell", "intel-broadwell", "intel-skylake", "intel-cascadelake", "intel-icelake",
	"intel-sapphirerapids"}

// lacksFeatures returns whether a running virtual machine may use processor features that the mode of a cluster hides.
// Ours: a virtual machine uses all features of the mode of its cluster; a cluster without EVC is not compared.
func lacksFeatures(from, to string) bool {
	return to != "" && from != "" && slices.Index(evcModes, to) < slices.Index(evcModes, from)
}

// refuseMove returns the fault of a move: the target is in maintenance mode or not connected, the virtual machine has
// a DirectPath or SR-IOV device, or vGPUs without vgpu.hotmigrate.enabled, or there is no room for its vGPUs, or its
// moves must be encrypted and one of the hosts cannot do that.
// VMware: NVIDIA AI Enterprise user guide for vSphere quotes the message without vgpu.hotmigrate.enabled; vSphere
// documentation: no vMotion with DirectPath; vSphere Security: encrypted virtual machines always move encrypted.
// Ours: VMotionNotSupported as the fault (unproven); GPU model, ECC and driver branch of the target are not compared.
func refuseMove(ctx *simulator.Context, now status, target *esxi.Host) vcsim.Fault {
	run := target.Runtime(ctx)
	if run.InMaintenanceMode || run.ConnectionState != types.HostSystemConnectionStateConnected {
		return &types.InvalidHostState{Host: &target.Self}
	}
	if !now.on {
		return nil
	}
	if f := now.hostFault(ctx); f != nil {
		return f
	}
	tied := now.directPath || slices.ContainsFunc(now.dvx, func(class string) bool {
		return !now.host.PCI.Moves(class) || !target.PCI.Moves(class)
	})
	switch {
	case tied:
		return notSupported("The virtual machine uses a DirectPath I/O device, which ties it to its host.")
	case len(now.vgpus) > 0 && !options.HotMigration(ctx):
		return notSupported("Migration was temporarily disabled due to another migration activity. " +
			"vGPU hot migration is not enabled.")
	case lacksFeatures(now.host.Spec.EVC, target.Spec.EVC):
		return new(types.FeatureRequirementsNotMet)
	case now.encryption == required && !bothEncrypt(now, target):
		return notSupported("The virtual machine requires encrypted vMotion, which a host does not support.")
	}
	if !target.Graphics.FitsOn(now.vgpus) {
		return new(types.InsufficientGraphicsResourcesFault)
	}
	return nil
}

func notSupported(words string) vcsim.Fault {
	f := new(types.VMotionNotSupported)
	f.FaultCause = &types.LocalizedMethodFault{Fault: &types.SystemError{Reason: words}, LocalizedMessage: words}
	return f
}

func bothEncrypt(now status, target *esxi.Host) bool {
	return now.host.EncryptsMoves() && target.EncryptsMoves()
}

// hotMigration returns the event at the start of a hot migration.
// VMware: Virtual machine events, GUID-6865D84A; public listeners for events: an encrypted vMotion posts EventEx with
// eventTypeId com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent, with its destination in the arguments.
func (m *Methods) hotMigration(now status, target *esxi.Host) types.BaseEvent {
	about := m.eventOn(now.host, now)
	if now.encryption == disabled || !bothEncrypt(now, target) {
		return &types.VmBeingHotMigratedEvent{VmEvent: about,
			DestHost:       vcsim.HostArgument(target.Spec.Name, target.Self),
			DestDatacenter: m.sim.Datacenter, DestDatastore: m.sim.Datastore}
	}
	return &types.EventEx{Event: about.Event, EventTypeId: "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent",
		ObjectType: m.Self.Type, ObjectId: m.Self.Value, ObjectName: now.name,
		Arguments: []types.KeyAnyValue{{Key: "destHost", Value: target.Spec.Name}}}
}

// hotMove reserves the vGPUs on the target, shows progress, and ends early if a host disconnects or a client cancels.
// Ours: a vMotion takes vmotion_seconds; the guest is not stunned.
func (m *Methods) hotMove(j *vcsim.Job, now status, target *esxi.Host) vcsim.Fault {
	if f := target.Graphics.Reserve(j.Ctx, m.Self, now.vgpus); f != nil {
		return f
	}
	for _, class := range now.dvx {
		if target.PCI.Reserve(m.Self, &types.VirtualPCIPassthroughDvxBackingInfo{DeviceClass: class}) == "" {
			j.Words = "Device is not available: the host has no free device of class " + class + "."
			return &types.GenericVmConfigFault{Reason: j.Words}
		}
	}
	chain := j.Task.Info.EventChainId
	m.sim.Post(j.Ctx, m.hotMigration(now, target), chain)
	m.sim.Post(j.Ctx, &types.VmEmigratingEvent{VmEvent: m.eventOn(now.host, now)}, chain)
	order := Order{Op: "Relocate", VM: now.name, MOID: m.Self.Value, Source: now.host.Spec.Name,
		Target: target.Spec.Name}
	if handed, fault := m.machines.External.dispatch(j, order); handed {
		return fault
	}
	return m.copyMemory(j, now, target)
}

// copyMemory takes vmotion_seconds, unless a host disconnects or a client cancels before.
func (m *Methods) copyMemory(j *vcsim.Job, now status, target *esxi.Host) vcsim.Fault {
	clock, whole := m.sim.Clock, time.Duration(now.host.VMotionSeconds()*float64(time.Second))
	shown := int32(0)
	for passed := time.Duration(0); passed < whole; passed = clock.Since(j.Began) {
		clock.Sleep(min(vcsim.Poll, whole-passed))
		if percent := int32(95 * min(1, clock.Since(j.Began).Seconds()/whole.Seconds())); percent != shown {
			j.Progress(percent)
			shown = percent
		}
		switch {
		case j.Cancelled():
			return new(types.RequestCanceled)
		case !now.host.Connected(j.Ctx) || !target.Connected(j.Ctx):
			return new(types.HostNotConnected)
		}
	}
	return nil
}

func (m *Methods) postFailure(j *vcsim.Job, now status, target *esxi.Host, f vcsim.Fault) {
	reason := vcsim.Localized(f)
	reason.LocalizedMessage = cmp.Or(j.Words, reason.LocalizedMessage)
	m.sim.Post(j.Ctx, &types.VmFailedMigrateEvent{VmEvent: m.eventOn(now.host, now),
		DestHost: vcsim.HostArgument(target.Spec.Name, target.Self), Reason: reason,
		DestDatacenter: m.sim.Datacenter, DestDatastore: m.sim.Datastore}, j.Task.Info.EventChainId)
}

func (m *Methods) eventOn(h *esxi.Host, now status) types.VmEvent {
	e := h.Event().Event
	e.Vm = &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: now.name}, Vm: m.Self}
	return types.VmEvent{Event: e}
}

// place returns the host, the pool and the datastore of the virtual machine; an absent one is empty.
func (m *Methods) place(ctx *simulator.Context) (host, pool, store vcsim.Ref) {
	ctx.WithLock(m.VirtualMachine, func() {
		host = *m.Runtime.Host
		if m.ResourcePool != nil {
			pool = *m.ResourcePool
		}
		if len(m.Datastore) > 0 {
			store = m.Datastore[0]
		}
	})
	return host, pool, store
}

// setPlace sets host, pool and datastore of the virtual machine; vcsim does not update the lists of the others.
func (m *Methods) setPlace(ctx *simulator.Context, spec types.VirtualMachineRelocateSpec) {
	reg := m.sim.Registry
	host, pool, store := m.place(ctx)
	var changes []types.PropertyChange
	if to := spec.Host; to != nil && *to != host {
		move(ctx, m.Self, reg.Get(host), reg.Get(*to), "vm", func(r mo.Reference) []vcsim.Ref {
			return r.(*simulator.HostSystem).Vm
		})
		changes = append(changes, vcsim.Change("runtime.host", to), vcsim.Change("summary.runtime.host", to))
	}
	if to := spec.Pool; to != nil && *to != pool && pool.Value != "" {
		move(ctx, m.Self, reg.Get(pool), reg.Get(*to), "vm", func(r mo.Reference) []vcsim.Ref {
			return r.(*simulator.ResourcePool).Vm
		})
		changes = append(changes, vcsim.Change("resourcePool", to))
	}
	if to := spec.Datastore; to != nil && *to != store && store.Value != "" {
		move(ctx, m.Self, reg.Get(store), reg.Get(*to), "vm", func(r mo.Reference) []vcsim.Ref {
			return r.(*simulator.Datastore).Vm
		})
		changes = append(changes, vcsim.Change("datastore", []vcsim.Ref{*to}))
	}
	if len(changes) > 0 {
		m.sim.Update(ctx, m.VirtualMachine, changes...)
	}
}
