package vcenter

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// searchMethods answers the calls to the SearchIndex that vcsim answers differently from a vCenter.
type searchMethods struct {
	*simulator.SearchIndex
	sim *vcsim.Sim
}

// FindByUuid finds a virtual machine by its BIOS or instance UUID, or a host by its hardware UUID.
// VMware: vSphere API reference, SearchIndex.FindByUuid. vcsim ends the call where it meets an object that a client of
// RetrieveDynamicTypeManager made, and never gives back the lock of the SearchIndex (docs/upstream.md).
func (m *searchMethods) FindByUuid(ctx *simulator.Context, req *types.FindByUuid) soap.HasFault {
	body := &methods.FindByUuidBody{Res: new(types.FindByUuidResponse)}
	kind := "HostSystem"
	if req.VmSearch {
		kind = "VirtualMachine"
	}
	instance := req.InstanceUuid != nil && *req.InstanceUuid
	for _, o := range m.sim.Registry.AllReference(kind) {
		if ref := o.Reference(); m.uuid(ctx, ref, instance) == req.Uuid {
			body.Res.Returnval = &ref
			break
		}
	}
	return body
}

// uuid is the UUID of an object, "" for one that has left the inventory.
func (m *searchMethods) uuid(ctx *simulator.Context, of vcsim.Ref, instance bool) (uuid string) {
	switch o := m.sim.Registry.Get(of).(type) {
	case *simulator.VirtualMachine:
		ctx.WithLock(o, func() {
			switch {
			case o.Config == nil:
			case instance:
				uuid = o.Config.InstanceUuid
			default:
				uuid = o.Config.Uuid
			}
		})
	case *simulator.HostSystem:
		ctx.WithLock(o, func() { uuid = o.Summary.Hardware.Uuid })
	}
	return uuid
}
