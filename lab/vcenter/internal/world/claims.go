package world

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// claim is a PCI device of a host that a running machine has for itself.
type claim struct{ host, pci string }

// refuseStart says why a machine cannot run on its host apart from vGPUs, and claims the PCI devices that it wants.
func (m *vmMethods) refuseStart(j *job, now machineNow) types.BaseMethodFault {
	var wants []*types.VirtualPCIPassthrough
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
					wants = append(wants, x)
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
	if free := now.host.kit.MemoryGB<<10 - m.world.reservedOn(j.ctx, now.host, m.Self); reserved > free {
		j.words = fmt.Sprintf("The host does not have sufficient memory resources: %d MB are wanted, %d MB are unreserved.", reserved, free)
		return &types.InsufficientMemoryResourcesFault{Unreserved: free << 20, Requested: reserved << 20}
	}
	return m.claimAll(j, now.host, wants)
}

// reservedOn is the memory that the running machines of a host have reserved, in MB.
func (w *World) reservedOn(ctx *simulator.Context, h *Host, besides ref) int64 {
	var total int64
	for _, o := range w.reg.AllReference("VirtualMachine") {
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

// claimAll claims a device for each wish, all or none.
func (m *vmMethods) claimAll(j *job, h *Host, wants []*types.VirtualPCIPassthrough) types.BaseMethodFault {
	for _, d := range wants {
		pci := m.claimOne(h, d.Backing)
		if pci == "" {
			m.world.unclaim(m.Self)
			j.words = "Device is not available: the host has no free PCI device that the virtual machine asks for."
			return &types.GenericVmConfigFault{Reason: j.words}
		}
		if b, dynamic := d.Backing.(*types.VirtualPCIPassthroughDynamicBackingInfo); dynamic {
			j.ctx.WithLock(m.VirtualMachine, func() { b.AssignedId = pci })
		}
	}
	return nil
}

func (m *vmMethods) claimOne(h *Host, backing types.BaseVirtualDeviceBackingInfo) string {
	h.mu.Lock()
	active := map[string]passthru{}
	for pci, p := range h.passthru {
		if p.active {
			active[pci] = p
		}
	}
	h.mu.Unlock()
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	for _, d := range h.pciDevices {
		p, ok := active[d.Id]
		if _, taken := m.world.claims[claim{h.spec.Name, d.Id}]; !ok || taken || !answers(backing, d, p.label) {
			continue
		}
		m.world.claims[claim{h.spec.Name, d.Id}] = m.Self
		return d.Id
	}
	return ""
}

// answers says whether a device is one that a backing asks for.
func answers(backing types.BaseVirtualDeviceBackingInfo, d types.HostPciDevice, label string) bool {
	switch b := backing.(type) {
	case *types.VirtualPCIPassthroughDeviceBackingInfo:
		return strings.EqualFold(b.Id, d.Id)
	case *types.VirtualPCIPassthroughDynamicBackingInfo:
		if b.CustomLabel != "" && b.CustomLabel != label {
			return false
		}
		for _, a := range b.AllowedDevice {
			if uint16(a.VendorId) == uint16(d.VendorId) && uint16(a.DeviceId) == uint16(d.DeviceId) {
				return true
			}
		}
	}
	return false
}

// unclaim gives the devices of a machine back.
func (w *World) unclaim(vm ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, holder := range w.claims {
		if holder == vm {
			delete(w.claims, c)
		}
	}
}
