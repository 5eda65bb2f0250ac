package vm

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// ReconfigVMTask changes the virtual machine after checks that vcsim leaves out. A reconfiguration waits for the end
// of another one.
// VMware: pyVmomi 9.1, faults of ReconfigVM_Task: TaskInProgress, VmConfigFault, ConcurrentAccess, InvalidState.
func (m *Methods) ReconfigVMTask(ctx *simulator.Context, req *types.ReconfigVM_Task) soap.HasFault {
	t := m.inTurn(ctx, "reconfigVMTask", "VirtualMachine.reconfigure", func(j *vcsim.Job) (any, vcsim.Fault) {
		return m.reconfigure(j, req)
	})
	return &methods.ReconfigVM_TaskBody{Res: &types.ReconfigVM_TaskResponse{Returnval: t}}
}

func (m *Methods) reconfigure(j *vcsim.Job, req *types.ReconfigVM_Task) (any, vcsim.Fault) {
	if f := RefuseNetworks(j.Ctx, req.Spec.DeviceChange); f != nil {
		return nil, f
	}
	if f := m.refuseChange(j, &req.Spec); f != nil {
		return nil, f
	}
	var result any
	var fault vcsim.Fault
	m.machines.space.Lock()
	m.amongMembers(j, added(req.Spec.DeviceChange), func() {
		result, fault = m.forward(j, func(c *simulator.Context) soap.HasFault {
			return m.VirtualMachine.ReconfigVMTask(c, req)
		})
	})
	m.machines.space.Unlock()
	if fault == nil {
		m.followUp(j, &req.Spec)
	}
	return result, fault
}

// refuseChange returns the fault of an invalid change, which is ConcurrentAccess for a stale changeVersion, and sets
// the keys of new devices.
// VMware: vSphere API reference, VirtualMachineConfigSpec.changeVersion.
func (m *Methods) refuseChange(j *vcsim.Job, spec *types.VirtualMachineConfigSpec) vcsim.Fault {
	var fault vcsim.Fault
	offered := m.machines.offersVGPU
	j.Ctx.WithLock(m.VirtualMachine, func() {
		on := m.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
		switch {
		case spec.ChangeVersion != "" && spec.ChangeVersion != m.Config.ChangeVersion:
			j.Words = "The configuration was changed by somebody else since it was read."
			fault = new(types.ConcurrentAccess)
		case on:
			fault = m.refuseHot(spec)
		}
		if fault == nil {
			fault = m.refuseDevices(j, spec, offered)
		}
		if fault == nil {
			NumberDevices(m.Config.Hardware.Device, spec.DeviceChange)
		}
	})
	return fault
}

// refuseHot refuses changes that are not possible while the virtual machine runs: CPUs and memory without hot add,
// firmware, passthrough, vGPU, SR-IOV and PVRDMA devices.
// VMware: vSphere API reference, CpuHotPlugNotSupported, MemoryHotPlugNotSupported.
// Ours: InvalidPowerState for devices, firmware and cores (unproven).
func (m *Methods) refuseHot(spec *types.VirtualMachineConfigSpec) vcsim.Fault {
	hardware, yes := m.Config.Hardware, func(b *bool) bool { return b != nil && *b }
	cores := spec.NumCoresPerSocket
	running := &types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOff,
		ExistingState: types.VirtualMachinePowerStatePoweredOn}
	switch {
	case spec.NumCPUs != 0 && spec.NumCPUs != hardware.NumCPU && !yes(m.Config.CpuHotAddEnabled):
		return new(types.CpuHotPlugNotSupported)
	case spec.MemoryMB != 0 && spec.MemoryMB != int64(hardware.MemoryMB) && !yes(m.Config.MemoryHotAddEnabled):
		return new(types.MemoryHotPlugNotSupported)
	case cores != nil && (hardware.NumCoresPerSocket == nil || *cores != *hardware.NumCoresPerSocket),
		spec.Firmware != "" && spec.Firmware != m.Config.Firmware:
		return running
	}
	for _, c := range spec.DeviceChange {
		switch c.GetVirtualDeviceConfigSpec().Device.(type) {
		case *types.VirtualPCIPassthrough, *types.VirtualVmxnet3Vrdma, *types.VirtualSriovEthernetCard:
			return running
		}
	}
	return nil
}

// refuseDevices refuses a vGPU type that no host has, a second PVRDMA adapter, and a PVRDMA adapter that is not on a
// distributed switch.
// VMware: VMware KB 328676: one PVRDMA adapter for each virtual machine, on a distributed switch.
// Ours: InvalidDeviceSpec as the fault, and its texts (unproven).
func (m *Methods) refuseDevices(
	j *vcsim.Job, spec *types.VirtualMachineConfigSpec, offered func(string) bool,
) vcsim.Fault {
	rdma := 0
	for _, d := range m.Config.Hardware.Device {
		if _, ok := d.(*types.VirtualVmxnet3Vrdma); ok {
			rdma++
		}
	}
	for i, c := range spec.DeviceChange {
		change := c.GetVirtualDeviceConfigSpec()
		switch d := change.Device.(type) {
		case *types.VirtualPCIPassthrough:
			b, ok := d.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo)
			if ok && change.Operation == types.VirtualDeviceConfigSpecOperationAdd && !offered(b.Vgpu) {
				j.Words = "vGPU type " + b.Vgpu + " is not known to any host."
			}
		case *types.VirtualVmxnet3Vrdma:
			j.Words = refuseRDMA(d, change.Operation, &rdma)
		}
		if j.Words != "" {
			return &types.InvalidDeviceSpec{InvalidVmConfig: types.InvalidVmConfig{
				Property: "virtualDeviceSpec.device.backing"}, DeviceIndex: int32(i)}
		}
	}
	return nil
}

// refuseRDMA counts the PVRDMA adapters after a change, and returns the reason to refuse the change, or "" if there
// is none.
func refuseRDMA(
	card *types.VirtualVmxnet3Vrdma, operation types.VirtualDeviceConfigSpecOperation, count *int,
) string {
	switch operation {
	case types.VirtualDeviceConfigSpecOperationAdd:
		*count++
	case types.VirtualDeviceConfigSpecOperationRemove:
		*count--
	}
	_, distributed := card.Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo)
	switch {
	case !distributed && operation != types.VirtualDeviceConfigSpecOperationRemove:
		return "A PVRDMA adapter needs a distributed port group."
	case *count > 1:
		return "A virtual machine can have one PVRDMA adapter."
	}
	return ""
}

// offersVGPU reports whether a host offers a vGPU type.
func (s *Machines) offersVGPU(name string) bool {
	return slices.ContainsFunc(s.hosts.All(), func(h *esxi.Host) bool { return h.Graphics.OffersProfile(name) })
}

// followUp lists the devices of controllers, stores device groups, removes the vApp configuration, and adjusts a
// locked memory reservation to the memory.
// VMware: vSphere API reference, deviceGroups (8.0), memoryReservationLockedToMax, vAppConfigRemoved.
func (m *Methods) followUp(j *vcsim.Job, spec *types.VirtualMachineConfigSpec) {
	var changes []types.PropertyChange
	j.Ctx.WithLock(m.VirtualMachine, func() {
		list(m.Config.Hardware.Device)
		if removed := spec.VAppConfigRemoved; removed != nil && *removed {
			changes = append(changes, vcsim.Change("config.vAppConfig", nil))
		}
		if spec.DeviceGroups != nil {
			groups := types.VirtualMachineVirtualDeviceGroups{}
			for i, g := range spec.DeviceGroups.DeviceGroup {
				key := &g.GetVirtualMachineVirtualDeviceGroupsDeviceGroup().GroupInstanceKey
				if *key < 0 {
					m.regroup(*key, int32(i+1))
					*key = int32(i + 1)
				}
				groups.DeviceGroup = append(groups.DeviceGroup, g)
			}
			changes = append(changes, vcsim.Change("config.deviceGroups", groups))
		}
		if locked := m.Config.MemoryReservationLockedToMax; locked != nil && *locked && spec.MemoryMB != 0 {
			allocation := types.ResourceAllocationInfo{}
			if m.Config.MemoryAllocation != nil {
				allocation = *m.Config.MemoryAllocation
			}
			allocation.Reservation = types.NewInt64(spec.MemoryMB)
			changes = append(changes, vcsim.Change("config.memoryAllocation", &allocation))
		}
	})
	if len(changes) > 0 {
		m.sim.Update(j.Ctx, m.VirtualMachine, changes...)
	}
}

// regroup sets the final key of a new device group on its devices.
func (m *Methods) regroup(from, to int32) {
	for _, d := range m.Config.Hardware.Device {
		if info := d.GetVirtualDevice().DeviceGroupInfo; info != nil && info.GroupInstanceKey == from {
			info.GroupInstanceKey = to
		}
	}
}
