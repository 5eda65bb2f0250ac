package vm

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// PowerOnVMTask powers on the virtual machine if the host is connected, is not in maintenance mode, and has the
// vGPUs, memory and PCI devices.
// VMware: pyVmomi 9.1, faults of PowerOnVM_Task: TaskInProgress, InvalidState, InsufficientResourcesFault,
// VmConfigFault.
// Ours: virtual machines of the description run from the start without checks.
func (m *Methods) PowerOnVMTask(ctx *simulator.Context, req *types.PowerOnVM_Task) soap.HasFault {
	t := m.run(ctx, "powerOnVMTask", "VirtualMachine.powerOn", func(j *vcsim.Job) (any, vcsim.Fault) {
		return m.powerOn(j, req)
	})
	return &methods.PowerOnVM_TaskBody{Res: &types.PowerOnVM_TaskResponse{Returnval: t}}
}

func (m *Methods) powerOn(j *vcsim.Job, req *types.PowerOnVM_Task) (any, vcsim.Fault) {
	now := m.read(j.Ctx)
	if f := now.powerFault(true); f != nil {
		return nil, f
	}
	if f := now.hostFault(j.Ctx); f != nil {
		return nil, f
	}
	if f := m.takeDevices(j, now); f != nil {
		return nil, f
	}
	result, fault := m.dispatchThen(j, "PowerOn", now, func() (any, vcsim.Fault) {
		return m.forward(j, func(c *simulator.Context) soap.HasFault { return m.VirtualMachine.PowerOnVMTask(c, req) })
	})
	if fault != nil && now.host != nil {
		now.host.Graphics.Release(j.Ctx, m.Self)
		now.host.PCI.Release(m.Self)
	}
	if fault == nil {
		m.RunsSince(j.Ctx, m.sim.Clock.Now())
		m.boot(j.Ctx)
	}
	return result, fault
}

// takeDevices reserves the vGPUs and PCI devices of a virtual machine on its host. Virtual machines of the description
// start without checks.
func (m *Methods) takeDevices(j *vcsim.Job, now status) vcsim.Fault {
	if now.host == nil {
		return nil
	}
	if now.host.Runtime(j.Ctx).InMaintenanceMode {
		return new(types.InvalidState)
	}
	if f := now.host.Graphics.Reserve(j.Ctx, m.Self, now.vgpus); f != nil && m.sim.Complete.Load() {
		return f
	}
	if f := m.refuseStart(j, now); f != nil && m.sim.Complete.Load() {
		now.host.Graphics.Release(j.Ctx, m.Self)
		return f
	}
	return nil
}

// RunsSince sets runtime.bootTime.
// VMware: vSphere API reference, VirtualMachineRuntimeInfo.bootTime.
func (m *Methods) RunsSince(ctx *simulator.Context, when time.Time) {
	began := when.UTC()
	m.sim.Update(ctx, m.VirtualMachine, vcsim.Change("runtime.bootTime", began),
		vcsim.Change("summary.runtime.bootTime", began))
}

// forgetBoot unsets runtime.bootTime, as a vMotion does.
// VMware: pyvmomi issue 359, vmware_exporter issue 355 (7.0.3: 47 of 73 virtual machines have none).
func (m *Methods) forgetBoot(ctx *simulator.Context) {
	m.sim.Update(ctx, m.VirtualMachine, vcsim.Change("runtime.bootTime", nil),
		vcsim.Change("summary.runtime.bootTime", nil))
}

// dispatchThen sends an operation to the listener if it handles it, and then lets vcsim carry it out.
func (m *Methods) dispatchThen(
	j *vcsim.Job, op string, now status, then func() (any, vcsim.Fault),
) (any, vcsim.Fault) {
	order := Order{Op: op, VM: now.name, MOID: m.Self.Value, Source: now.hostName(), Target: now.hostName()}
	if _, fault := m.machines.External.dispatch(j, order); fault != nil {
		return nil, fault
	}
	return then()
}

// PowerOffVMTask powers off the virtual machine and releases its vGPUs and PCI devices.
// VMware: pyVmomi 9.1, faults of PowerOffVM_Task: TaskInProgress, InvalidState.
func (m *Methods) PowerOffVMTask(ctx *simulator.Context, req *types.PowerOffVM_Task) soap.HasFault {
	t := m.run(ctx, "powerOffVMTask", "VirtualMachine.powerOff",
		func(j *vcsim.Job) (any, vcsim.Fault) { return m.powerOff(j, "PowerOff", req) })
	return &methods.PowerOffVM_TaskBody{Res: &types.PowerOffVM_TaskResponse{Returnval: t}}
}

func (m *Methods) powerOff(j *vcsim.Job, op string, req *types.PowerOffVM_Task) (any, vcsim.Fault) {
	now := m.read(j.Ctx)
	if f := now.powerFault(false); f != nil {
		return nil, f
	}
	if f := now.hostFault(j.Ctx); f != nil {
		return nil, f
	}
	result, fault := m.dispatchThen(j, op, now, func() (any, vcsim.Fault) {
		return m.forward(j, func(c *simulator.Context) soap.HasFault {
			return m.VirtualMachine.PowerOffVMTask(c, req)
		})
	})
	if fault == nil {
		m.stopped(j.Ctx, now)
	}
	return result, fault
}

// stopped releases the devices of a powered-off virtual machine; its VMware Tools no longer run.
func (m *Methods) stopped(ctx *simulator.Context, now status) {
	if now.host != nil {
		now.host.Graphics.Release(ctx, m.Self)
		now.host.PCI.Release(m.Self)
	}
	m.setGuest(ctx, "", "", metadata{})
}

// ResetVMTask resets the virtual machine; it keeps its vGPUs.
// VMware: vSphere API reference, VirtualMachine.ResetVM_Task: InvalidPowerState unless powered on.
func (m *Methods) ResetVMTask(ctx *simulator.Context, req *types.ResetVM_Task) soap.HasFault {
	t := m.run(ctx, "resetVMTask", "VirtualMachine.reset", func(j *vcsim.Job) (any, vcsim.Fault) {
		now := m.read(j.Ctx)
		if !now.on {
			return nil, now.powerFault(false)
		}
		return m.dispatchThen(j, "Reset", now, func() (any, vcsim.Fault) {
			return m.forward(j, func(c *simulator.Context) soap.HasFault {
				return m.VirtualMachine.ResetVMTask(c, req)
			})
		})
	})
	return &methods.ResetVM_TaskBody{Res: &types.ResetVM_TaskResponse{Returnval: t}}
}

// ShutdownGuest powers off the virtual machine as soon as its guest has shut down.
// VMware: vSphere API reference, VirtualMachine.ShutdownGuest: InvalidPowerState unless powered on.
// Ours: without a listener, the guest shuts down immediately; ToolsUnavailable is not simulated.
func (m *Methods) ShutdownGuest(ctx *simulator.Context, _ *types.ShutdownGuest) soap.HasFault {
	body := new(methods.ShutdownGuestBody)
	if m.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn {
		body.Fault_ = vcsim.SoapFault(&types.InvalidPowerState{
			RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: m.Runtime.PowerState})
		return body
	}
	m.run(ctx, "powerOffVMTask", "VirtualMachine.powerOff", func(j *vcsim.Job) (any, vcsim.Fault) {
		return m.powerOff(j, "ShutdownGuest", &types.PowerOffVM_Task{This: m.Self})
	})
	body.Res = new(types.ShutdownGuestResponse)
	return body
}

// DestroyTask removes a powered-off virtual machine. Detached disks in its folder stay, which vcsim deletes.
// VMware: vSphere API reference, ManagedEntity.Destroy_Task; InvalidPowerState for a running one.
// Ours: a disk that is not attached is not a file of the virtual machine (unproven).
func (m *Methods) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	t := m.run(ctx, "destroyTask", "VirtualMachine.destroy", func(j *vcsim.Job) (any, vcsim.Fault) {
		now := m.read(j.Ctx)
		if now.on {
			return nil, &types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOff,
				ExistingState: types.VirtualMachinePowerStatePoweredOn}
		}
		result, fault := m.dispatchThen(j, "Destroy", now, func() (any, vcsim.Fault) {
			m.keepDisks(j.Ctx)
			return m.forwardAlone(j, func(c *simulator.Context) soap.HasFault {
				return m.VirtualMachine.DestroyTask(c, req)
			})
		})
		if fault == nil {
			cluster.RemoveFromRules(j.Ctx, m.Self)
		}
		return result, fault
	})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: t}}
}

// keepDisks lets vcsim delete only the description of the virtual machine if its folder contains other disks, and not
// the whole folder.
func (m *Methods) keepDisks(ctx *simulator.Context) {
	ctx.WithLock(m.VirtualMachine, func() {
		var home object.DatastorePath
		home.FromString(m.Config.Files.VmPathName)
		attached := map[string]bool{}
		for _, d := range m.Config.Hardware.Device {
			if b, ok := d.GetVirtualDevice().Backing.(types.BaseVirtualDeviceFileBackingInfo); ok {
				name := strings.TrimSuffix(path.Base(b.GetVirtualDeviceFileBackingInfo().FileName), ".vmdk")
				attached[name+".vmdk"], attached[name+"-flat.vmdk"] = true, true
			}
		}
		store := ctx.Map.FindByName(home.Datastore, m.Datastore).(*simulator.Datastore)
		files, _ := filepath.Glob(filepath.Join(store.Summary.Url, path.Dir(home.Path), "*.vmdk"))
		if slices.ContainsFunc(files, func(f string) bool { return !attached[filepath.Base(f)] }) {
			m.Config.Files.LogDirectory = m.Config.Files.VmPathName
		}
	})
}

// UnregisterVM removes a powered-off virtual machine from the inventory, and from the rules of its cluster.
// VMware: pyVmomi 9.1, faults of UnregisterVM: TaskInProgress, InvalidPowerState.
func (m *Methods) UnregisterVM(ctx *simulator.Context, req *types.UnregisterVM) soap.HasFault {
	body := m.VirtualMachine.UnregisterVM(ctx, req)
	if body.(*methods.UnregisterVMBody).Fault_ == nil {
		cluster.RemoveFromRules(ctx, m.Self)
	}
	return body
}
