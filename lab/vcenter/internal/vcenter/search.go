package vcenter

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
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
// VMware: vSphere API reference, SearchIndex.FindByUuid. vcsim aborts the call at an object that a client created
// with RetrieveDynamicTypeManager, and never releases the lock of the SearchIndex (docs/vcsim.md).
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

// uuid returns the UUID of an object, or "" if it has left the inventory.
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

// FindByInventoryPath finds the object at a path such as /dc1/vm/worker01.
// Ours: vcsim reads lists and names without their locks; the answer is the same.
func (m *searchMethods) FindByInventoryPath(ctx *simulator.Context, req *types.FindByInventoryPath) soap.HasFault {
	at := m.sim.Registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content.RootFolder
	found := &at
	for _, name := range strings.FieldsFunc(req.InventoryPath, func(c rune) bool { return c == '/' }) {
		if found = m.child(ctx, *found, name); found == nil {
			break
		}
	}
	if req.InventoryPath == "" {
		found = nil
	}
	return &methods.FindByInventoryPathBody{Res: &types.FindByInventoryPathResponse{Returnval: found}}
}

// FindChild finds a child of an object by its name.
// Ours: see FindByInventoryPath.
func (m *searchMethods) FindChild(ctx *simulator.Context, req *types.FindChild) soap.HasFault {
	if m.sim.Registry.Get(req.Entity) == nil {
		return &methods.FindChildBody{Fault_: vcsim.SoapFault(&types.ManagedObjectNotFound{Obj: req.Entity})}
	}
	found := m.child(ctx, req.Entity, req.Name)
	return &methods.FindChildBody{Res: &types.FindChildResponse{Returnval: found}}
}

func (m *searchMethods) child(ctx *simulator.Context, of vcsim.Ref, name string) *vcsim.Ref {
	for _, ref := range m.children(ctx, of) {
		one, ok := m.sim.Registry.Get(ref).(mo.Entity)
		if !ok {
			continue
		}
		var is bool
		ctx.WithLock(ref, func() { is = nameOf(one) == name })
		if is {
			return &ref
		}
	}
	return nil
}

// children returns the children of an object.
func (m *searchMethods) children(ctx *simulator.Context, of vcsim.Ref) (found []vcsim.Ref) {
	o := m.sim.Registry.Get(of)
	if o == nil {
		return nil
	}
	ctx.WithLock(o, func() {
		switch e := o.(type) {
		case *simulator.Datacenter:
			found = []vcsim.Ref{e.VmFolder, e.HostFolder, e.DatastoreFolder, e.NetworkFolder}
		case *simulator.Folder:
			found = slices.Clone(e.ChildEntity)
		case *mo.ComputeResource:
			found = append(slices.Clone(e.Host), *e.ResourcePool)
		case *simulator.ClusterComputeResource:
			found = append(slices.Clone(e.Host), *e.ResourcePool)
		case *simulator.ResourcePool:
			found = append(slices.Clone(e.ResourcePool.ResourcePool), e.Vm...)
		case *simulator.VirtualApp:
			found = append(slices.Clone(e.ResourcePool.ResourcePool), e.Vm...)
		}
	})
	return found
}

// nameOf returns the name of an object; networks have a second property for it.
func nameOf(e mo.Entity) string {
	switch one := e.(type) {
	case *mo.Network:
		return one.Name
	case *mo.OpaqueNetwork:
		return one.Name
	case *simulator.DistributedVirtualSwitch:
		return one.Name
	case *simulator.DistributedVirtualPortgroup:
		return one.Name
	}
	return e.Entity().Name
}
