package vm

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// refuseStart refuses a power-on without enough unreserved memory, without full reservation where a PCI device, vGPU
// or PVRDMA adapter needs it, or without a free PCI device.
// VMware: public logs quote "Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize";
// VMware KB 328676: PVRDMA needs all memory reserved.
// Ours: the other texts; the host itself needs no memory.
func (m *Methods) refuseStart(j *vcsim.Job, now status) vcsim.Fault {
	asked, bound := m.adapters(j.Ctx)
	memory, reserved := m.memory(j.Ctx)
	if bound && reserved < memory {
		j.Words = fmt.Sprintf(
			"Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(%d).", memory)
		return &types.GenericVmConfigFault{Reason: j.Words}
	}
	if free := now.host.Hardware.MemoryGB<<10 - reservedOn(j.Ctx, now.host, m.Self); reserved > free {
		j.Words = fmt.Sprintf(
			"The host does not have sufficient memory resources: %d MB are wanted, %d MB are unreserved.", reserved,
			free)
		return &types.InsufficientMemoryResourcesFault{Unreserved: free << 20, Requested: reserved << 20}
	}
	return m.reserveDevices(j, now.host, asked)
}

// adapters returns the PCI devices of the virtual machine other than vGPUs; bound is whether a device needs all
// memory reserved.
func (m *Methods) adapters(ctx *simulator.Context) (list []*types.VirtualPCIPassthrough, bound bool) {
	ctx.WithLock(m.VirtualMachine, func() {
		for _, d := range m.Config.Hardware.Device {
			switch x := d.(type) {
			case *types.VirtualPCIPassthrough:
				bound = true
				if _, vgpu := x.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo); !vgpu {
					list = append(list, x)
				}
			case *types.VirtualVmxnet3Vrdma:
				bound = true
			case *types.VirtualSriovEthernetCard:
				if x.DvxBackingInfo != nil {
					bound = true
					list = append(list, &types.VirtualPCIPassthrough{
						VirtualDevice: types.VirtualDevice{Backing: x.DvxBackingInfo}})
				}
			}
		}
	})
	return list, bound
}

// memory returns the memory of the virtual machine and its reserved part, in MB.
func (m *Methods) memory(ctx *simulator.Context) (size, reserved int64) {
	ctx.WithLock(m.VirtualMachine, func() {
		size = int64(m.Config.Hardware.MemoryMB)
		if a := m.Config.MemoryAllocation; a != nil && a.Reservation != nil {
			reserved = *a.Reservation
		}
	})
	return size, reserved
}

// reservedOn returns the memory that running virtual machines of a host have reserved, in MB.
func reservedOn(ctx *simulator.Context, h *esxi.Host, besides vcsim.Ref) int64 {
	var total int64
	for _, ref := range h.Machines(ctx) {
		vm, ok := ctx.Map.Get(ref).(*simulator.VirtualMachine)
		if !ok || ref == besides {
			continue
		}
		ctx.WithLock(vm, func() {
			running := vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
			a := vm.Config.MemoryAllocation
			if running && vm.Runtime.Host != nil && *vm.Runtime.Host == h.Self && a != nil && a.Reservation != nil {
				total += *a.Reservation
			}
		})
	}
	return total
}

// reserveDevices reserves a PCI device for each adapter, all or none.
func (m *Methods) reserveDevices(j *vcsim.Job, h *esxi.Host, adapters []*types.VirtualPCIPassthrough) vcsim.Fault {
	for _, d := range adapters {
		pci := h.PCI.Reserve(m.Self, d.Backing)
		if pci == "" {
			h.PCI.Release(m.Self)
			j.Words = "Device is not available: the host has no free PCI device that the virtual machine asks for."
			return &types.GenericVmConfigFault{Reason: j.Words}
		}
		if b, dynamic := d.Backing.(*types.VirtualPCIPassthroughDynamicBackingInfo); dynamic {
			j.Ctx.WithLock(m.VirtualMachine, func() { b.AssignedId = pci })
		}
	}
	return nil
}
