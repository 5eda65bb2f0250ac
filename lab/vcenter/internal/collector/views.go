package collector

import (
	"reflect"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// ViewMethods creates views that other clients do not affect.
type ViewMethods struct{ *simulator.ViewManager }

// containerView is a view of the objects in a container.
type containerView struct {
	mo.ContainerView
	building bool
	gone     map[vcsim.Ref]bool // objects that left while the view was built
}

// containers are the types of objects for which views can be created; shown are further types that views can show.
var (
	containers = []string{"Folder", "StoragePod", "Datacenter", "ComputeResource", "ClusterComputeResource",
		"HostSystem", "ResourcePool", "VirtualApp"}
	shown = []string{"ManagedEntity", "VirtualMachine", "Datastore", "Network", "OpaqueNetwork",
		"DistributedVirtualPortgroup", "DistributedVirtualSwitch", "VmwareDistributedVirtualSwitch"}
)

// CreateContainerView creates a view of the objects in a container; new objects join it, and removed ones leave it.
// VMware: vSphere API reference, ViewManager.CreateContainerView; vcsim returns InvalidArgument for other types.
func (m *ViewMethods) CreateContainerView(ctx *simulator.Context, req *types.CreateContainerView) soap.HasFault {
	container := ctx.Map.Get(req.Container)
	if f := refuseView(container, req); f != nil {
		return &methods.CreateContainerViewBody{Fault_: vcsim.SoapFault(f)}
	}
	v := &containerView{building: true, gone: map[vcsim.Ref]bool{}}
	v.Self.Type = "ContainerView" // otherwise the reference has the name of the Go type
	v.Container, v.Recursive, v.Type = req.Container, req.Recursive, req.Type
	ctx.Session.Put(v)
	ctx.Map.AddHandler(v)
	found := v.within(ctx, container, map[vcsim.Ref]bool{})
	ctx.WithLock(v, func() {
		known := map[vcsim.Ref]bool{}
		for _, one := range v.View {
			known[one] = true
		}
		found = slices.DeleteFunc(found, func(one vcsim.Ref) bool { return v.gone[one] || known[one] })
		v.View, v.building, v.gone = append(v.View, found...), false, nil
	})
	return &methods.CreateContainerViewBody{Res: &types.CreateContainerViewResponse{Returnval: v.Self}}
}

func refuseView(container mo.Reference, req *types.CreateContainerView) vcsim.Fault {
	if container == nil {
		return &types.ManagedObjectNotFound{Obj: req.Container}
	}
	if !slices.Contains(containers, req.Container.Type) {
		return &types.InvalidArgument{InvalidProperty: "container"}
	}
	for _, kind := range req.Type {
		if !slices.Contains(containers, kind) && !slices.Contains(shown, kind) {
			return &types.InvalidArgument{InvalidProperty: "type"}
		}
	}
	return nil
}

// DestroyView removes the view.
// VMware: vSphere API reference, View.DestroyView.
func (v *containerView) DestroyView(ctx *simulator.Context, req *types.DestroyView) soap.HasFault {
	ctx.Map.RemoveHandler(v)
	ctx.Session.Remove(ctx, req.This)
	return &methods.DestroyViewBody{Res: &types.DestroyViewResponse{}}
}

// within returns the objects of the requested types in a container, read under its lock.
func (v *containerView) within(ctx *simulator.Context, container mo.Reference, seen map[vcsim.Ref]bool) []vcsim.Ref {
	var children, list []vcsim.Ref
	if container == nil {
		return nil
	}
	ctx.WithLock(container, func() { children = content(container) })
	for _, child := range children {
		if seen[child] {
			continue
		}
		seen[child] = true
		if v.shows(ctx, child) {
			list = append(list, child)
		}
		if v.Recursive && child.Type != "VirtualMachine" {
			list = append(list, v.within(ctx, ctx.Map.Get(child), seen)...)
		}
	}
	return list
}

// content returns a copy of the lists of a container.
func content(container mo.Reference) []vcsim.Ref {
	switch e := managed(container).(type) {
	case *mo.Datacenter:
		return []vcsim.Ref{e.VmFolder, e.HostFolder, e.DatastoreFolder, e.NetworkFolder}
	case *mo.Folder:
		return slices.Clone(e.ChildEntity)
	case *mo.StoragePod:
		return slices.Clone(e.ChildEntity)
	case *mo.ComputeResource:
		return append(slices.Clone(e.Host), *e.ResourcePool)
	case *mo.ClusterComputeResource:
		return append(slices.Clone(e.Host), *e.ResourcePool)
	case *mo.ResourcePool:
		return slices.Concat(e.ResourcePool, e.Vm)
	case *mo.VirtualApp:
		return slices.Concat(e.ResourcePool.ResourcePool, e.Vm)
	case *mo.HostSystem:
		return slices.Clone(e.Vm)
	}
	return nil
}

// managed returns the API object in an object of vcsim, which is its first field.
func managed(o mo.Reference) any {
	value := reflect.ValueOf(o).Elem()
	for value.Type().PkgPath() != reflect.TypeFor[mo.Folder]().PkgPath() && value.NumField() > 0 {
		value = value.Field(0)
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
	}
	return value.Addr().Interface()
}

// shows reports whether the view shows objects of a type, or of one that extends it.
func (v *containerView) shows(ctx *simulator.Context, ref vcsim.Ref) bool {
	if len(v.Type) == 0 || slices.Contains(v.Type, ref.Type) {
		return true
	}
	o := ctx.Map.Get(ref)
	if o == nil {
		return false
	}
	kind := reflect.TypeOf(managed(o)).Elem()
	return slices.ContainsFunc(v.Type, func(wanted string) bool {
		field, ok := kind.FieldByName(wanted)
		return kind.Name() == wanted || ok && field.Anonymous
	})
}

// holds reports whether the container is the parent of an object, or one of its ancestors if the view is recursive.
func (v *containerView) holds(ctx *simulator.Context, o mo.Reference) bool {
	for entity, ok := o.(mo.Entity); ok && entity.Entity().Parent != nil; {
		parent := *entity.Entity().Parent
		if parent == v.Container {
			return true
		}
		if !v.Recursive {
			return false
		}
		entity, ok = ctx.Map.Get(parent).(mo.Entity)
	}
	return false
}

// PutObject is called by vcsim for every new object.
// Ours: vcsim reads the lists of all containers without their locks for each new object of any client.
func (v *containerView) PutObject(ctx *simulator.Context, o mo.Reference) {
	ref := o.Reference()
	if _, entity := o.(mo.Entity); !entity || !v.shows(ctx, ref) || !v.holds(ctx, o) {
		return
	}
	ctx.WithLock(v, func() {
		if !slices.Contains(v.View, ref) {
			ctx.Update(v, []types.PropertyChange{vcsim.Change("view", append(slices.Clone(v.View), ref))})
		}
	})
}

// RemoveObject is called by vcsim for every object that leaves.
func (v *containerView) RemoveObject(ctx *simulator.Context, gone vcsim.Ref) {
	ctx.WithLock(v, func() {
		if v.building {
			v.gone[gone] = true
		}
		if slices.Contains(v.View, gone) {
			ctx.Update(v, []types.PropertyChange{vcsim.Change("view", vcsim.Without(v.View, gone))})
		}
	})
}

// UpdateObject does nothing.
func (*containerView) UpdateObject(*simulator.Context, mo.Reference, []types.PropertyChange) {}
