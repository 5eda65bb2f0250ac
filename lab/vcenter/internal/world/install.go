package world

import (
	"reflect"

	"github.com/vmware/govmomi/simulator"
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
	installCollector(w.Sim, func(cluster ref) bool { return w.clusters.state(cluster).ConfigProfile })
	w.reg.Handler = w.receiver
	installVcenterOptions(w.Sim)
	installProfiles(w.Sim)
	installStatistics(w.Sim)
	installAuthorization(w.Sim)
}

// PutObject repairs new virtual machines and turns new hosts into ours.
func (h *hook) PutObject(ctx *simulator.Context, o mo.Reference) {
	switch x := o.(type) {
	case *simulator.VirtualMachine:
		repairVM(x)
	case *simulator.HostSystem:
		h.world.clusters.addVsan(ctx, h.world.hosts.add(ctx, x).Host)
	}
}

// UpdateObject is of no interest here.
func (h *hook) UpdateObject(*simulator.Context, mo.Reference, []types.PropertyChange) {}

// RemoveObject forgets a host that left.
func (h *hook) RemoveObject(_ *simulator.Context, gone types.ManagedObjectReference) {
	h.world.hosts.remove(gone)
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
	if h := w.hosts.of(w.Owner(this)); h != nil {
		if wrapped := h.wrapper(object); wrapped != nil {
			return wrapped
		}
	}
	switch o := object.(type) {
	case *simulator.ClusterComputeResource:
		if w.built.Load() {
			return &clusterMethods{ClusterComputeResource: o, sim: w.Sim}
		}
	case *simulator.Folder:
		return &folderMethods{Folder: o, sim: w.Sim}
	case *simulator.DistributedVirtualSwitch:
		return &dvsMethods{DistributedVirtualSwitch: o, sim: w.Sim, fabric: w.hosts.fabric}
	case *simulator.DistributedVirtualPortgroup:
		return &portgroupMethods{DistributedVirtualPortgroup: o, sim: w.Sim, fabric: w.hosts.fabric}
	case *simulator.VirtualMachine:
		return w.machines.methods(o)
	case *simulator.VmProvisioningChecker:
		return &checkerMethods{VmProvisioningChecker: o, machines: w.machines, sim: w.Sim}
	case *simulator.EnvironmentBrowser:
		return &environmentMethods{EnvironmentBrowser: o, registered: w.hosts}
	case *simulator.OptionManager:
		return &optionMethods{OptionManager: o}
	case *simulator.PerformanceManager:
		return &performanceMethods{PerformanceManager: o, hosts: w.hosts}
	case *simulator.AuthorizationManager:
		return &authorizationMethods{AuthorizationManager: o}
	}
	return nil
}

// wrapper is for the host itself and its managers.
func (h *ESXi) wrapper(object mo.Reference) mo.Reference {
	switch o := object.(type) {
	case *simulator.HostSystem:
		return &hostMethods{HostSystem: o, host: h}
	case *simulator.HostFirewallSystem:
		return &firewallMethods{HostFirewallSystem: o, services: h.services}
	case *simulator.HostNetworkSystem:
		return &networkMethods{HostNetworkSystem: o, network: h.network}
	case *simulator.HostVirtualNicManager:
		return &vnicManagerMethods{HostVirtualNicManager: o, network: h.network}
	case *simulator.OptionManager:
		return &optionMethods{OptionManager: o, host: h.Host}
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
