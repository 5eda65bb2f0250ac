package world

import (
	"reflect"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// hook is called by vcsim for every object that enters or leaves its registry.
type hook struct {
	mo.Folder // gives the hook a reference of its own, under which vcsim keeps it
	world     *World
}

func (w *World) install() {
	h := &hook{world: w}
	h.Folder.Self = ref{Type: "LabHook", Value: "lab-hook"}
	w.reg.AddHandler(h)
	w.repairFetch()
	w.reg.Handler = w.receiver
	w.installVcenterOptions()
	w.installProfiles()
	w.installStatistics()
	w.installAuthorization()
}

// PutObject repairs new virtual machines and turns new hosts into ours.
func (h *hook) PutObject(ctx *simulator.Context, o mo.Reference) {
	switch x := o.(type) {
	case *simulator.VirtualMachine:
		repairVM(x)
	case *simulator.HostSystem:
		h.world.adopt(ctx, x)
	}
}

// UpdateObject is of no interest here.
func (h *hook) UpdateObject(*simulator.Context, mo.Reference, []types.PropertyChange) {}

// RemoveObject forgets a host that left.
func (h *hook) RemoveObject(_ *simulator.Context, gone types.ManagedObjectReference) {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	delete(h.world.hosts, gone)
	h.world.disown(gone)
}

// receiver picks the object that answers a call. The registered objects stay vcsim's own, so that its type
// assertions keep working; only the methods we answer ourselves go to a wrapper.
func (w *World) receiver(_ *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	wrapper := w.wrapper(m.This)
	if wrapper == nil || !reflect.ValueOf(wrapper).MethodByName(goName(m.Name)).IsValid() {
		return nil, nil
	}
	// vcsim looks the object up once more in the session, which would win over the wrapper: a reference it
	// cannot find prevents that. The call's body keeps the real one.
	m.This.Value += "+lab"
	return wrapper, nil
}

func (w *World) wrapper(this ref) mo.Reference {
	object := w.reg.Get(this)
	if h := w.host(w.Owner(this)); h != nil {
		if wrapped := h.wrapper(object); wrapped != nil {
			return wrapped
		}
	}
	switch o := object.(type) {
	case *simulator.ClusterComputeResource:
		if w.built.Load() {
			return &clusterMethods{ClusterComputeResource: o, world: w}
		}
	case *simulator.Folder:
		return &folderMethods{Folder: o, world: w}
	case *simulator.DistributedVirtualSwitch:
		return &dvsMethods{DistributedVirtualSwitch: o, world: w}
	case *simulator.DistributedVirtualPortgroup:
		return &portgroupMethods{DistributedVirtualPortgroup: o, world: w}
	case *simulator.VirtualMachine:
		return &vmMethods{VirtualMachine: o, world: w}
	case *simulator.VmProvisioningChecker:
		return &checkerMethods{VmProvisioningChecker: o, world: w}
	case *simulator.EnvironmentBrowser:
		return &environmentMethods{EnvironmentBrowser: o, world: w}
	case *simulator.OptionManager:
		return &optionMethods{OptionManager: o, world: w}
	case *simulator.PerformanceManager:
		return &performanceMethods{PerformanceManager: o, world: w}
	case *simulator.AuthorizationManager:
		return &authorizationMethods{AuthorizationManager: o, world: w}
	}
	return nil
}

// wrapper is for the host itself and its managers.
func (h *Host) wrapper(object mo.Reference) mo.Reference {
	switch o := object.(type) {
	case *simulator.HostSystem:
		return &hostMethods{HostSystem: o, host: h}
	case *simulator.HostFirewallSystem:
		return &firewallMethods{HostFirewallSystem: o, host: h}
	case *simulator.HostNetworkSystem:
		return &networkMethods{HostNetworkSystem: o, host: h}
	case *simulator.HostVirtualNicManager:
		return &vnicManagerMethods{HostVirtualNicManager: o, host: h}
	case *simulator.OptionManager:
		return &optionMethods{OptionManager: o, world: h.world, host: h}
	}
	return nil
}

// repairVM fills two enumerations that vcsim leaves empty; an empty one stops pyVmomi (govmomi issue 4084).
func repairVM(vm *simulator.VirtualMachine) {
	for _, r := range []*types.VirtualMachineRuntimeInfo{&vm.Runtime, &vm.Summary.Runtime} {
		r.FaultToleranceState = types.VirtualMachineFaultToleranceStateNotConfigured
		r.RecordReplayState = types.VirtualMachineRecordReplayStateInactive
	}
}

func (w *World) repairFetch() {
	content := w.reg.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content
	pc := &propertyCollector{}
	pc.Self = content.PropertyCollector
	w.reg.Put(pc)
}
