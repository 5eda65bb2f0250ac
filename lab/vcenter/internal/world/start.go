package world

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// refuseStart says why a machine cannot run on its host apart from vGPUs, and reserves the PCI devices that it asks for.
func (m *vmMethods) refuseStart(j *job, now machineNow) types.BaseMethodFault {
	var asked []*types.VirtualPCIPassthrough
	var memory, reserved int64
	bound := false
	j.ctx.WithLock(m.VirtualMachine, func() {
		memory = int64(m.Config.Hardware.MemoryMB)
		if a := m.Config.MemoryAllocation; a != nil && a.Reservation != nil {
			reserved = *a.Reservation
		}
		for _, d := range m.Config.Hardware.Device {
			switch x := d.(type) {
			case *types.VirtualPCIPassthrough:
				bound = true
				if _, vgpu := x.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo); !vgpu {
					asked = append(asked, x)
				}
			case *types.VirtualVmxnet3Vrdma:
				bound = true
			}
		}
	})
	if bound && reserved < memory {
		j.words = fmt.Sprintf("Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize(%d).", memory)
		return &types.GenericVmConfigFault{Reason: j.words}
	}
	if free := now.host.kit.MemoryGB<<10 - reservedOn(j.ctx, now.host, m.Self); reserved > free {
		j.words = fmt.Sprintf("The host does not have sufficient memory resources: %d MB are wanted, %d MB are unreserved.", reserved, free)
		return &types.InsufficientMemoryResourcesFault{Unreserved: free << 20, Requested: reserved << 20}
	}
	return m.reserveDevices(j, now.host, asked)
}

// reservedOn is the memory that the running machines of a host have reserved, in MB.
func reservedOn(ctx *simulator.Context, h *ESXi, besides ref) int64 {
	var total int64
	for _, o := range ctx.Map.AllReference("VirtualMachine") {
		vm, ok := o.(*simulator.VirtualMachine)
		if !ok || vm.Self == besides {
			continue
		}
		ctx.WithLock(vm, func() {
			running := vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
			a := vm.Config.MemoryAllocation
			if running && vm.Runtime.Host != nil && *vm.Runtime.Host == h.self && a != nil && a.Reservation != nil {
				total += *a.Reservation
			}
		})
	}
	return total
}

// reserveDevices reserves a device for each adapter, all or none.
func (m *vmMethods) reserveDevices(j *job, h *ESXi, adapters []*types.VirtualPCIPassthrough) types.BaseMethodFault {
	for _, d := range adapters {
		pci := h.pci.reserve(m.Self, d.Backing)
		if pci == "" {
			h.pci.release(m.Self)
			j.words = "Device is not available: the host has no free PCI device that the virtual machine asks for."
			return &types.GenericVmConfigFault{Reason: j.words}
		}
		if b, dynamic := d.Backing.(*types.VirtualPCIPassthroughDynamicBackingInfo); dynamic {
			j.ctx.WithLock(m.VirtualMachine, func() { b.AssignedId = pci })
		}
	}
	return nil
}
