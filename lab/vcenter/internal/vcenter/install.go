package vcenter

import (
	"reflect"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/collector"
	"dml.vsphere/lab/vcenter/internal/counters"
	"dml.vsphere/lab/vcenter/internal/dvs"
	"dml.vsphere/lab/vcenter/internal/judge"
	"dml.vsphere/lab/vcenter/internal/options"
	"dml.vsphere/lab/vcenter/internal/vcsim"
	"dml.vsphere/lab/vcenter/internal/vm"
)

// hook is called by vcsim for every object that enters or leaves the registry.
type hook struct {
	mo.Folder // gives the hook a reference for vcsim's registry
	server    *Server
}

func (w *Server) install() {
	h := &hook{server: w}
	h.Folder.Self = vcsim.Ref{Type: "LabHook", Value: "lab-hook"}
	w.sim.Registry.AddHandler(h)
	w.Judge = judge.Install(w.sim)
	collector.Install(w.sim, func(cluster vcsim.Ref) bool { return w.clusters.State(cluster).ConfigProfile },
		w.bindings, w.modes)
	w.sim.Registry.Handler = w.receiver
	options.InstallVcenter(w.sim)
	installProfiles(w.sim)
	installDirectPath(w.sim, w.hosts)
	counters.Install(w.sim)
	installAuthorization(w.sim)
}

// bindings returns the GPUs of a host that virtual machines use.
func (w *Server) bindings(host vcsim.Ref) []collector.Binding {
	h := w.hosts.ByRef(host)
	if h == nil {
		return nil
	}
	var out []collector.Binding
	for _, g := range h.Hardware.GPUs {
		for _, vm := range h.Graphics.Users(g.PCI) {
			out = append(out, collector.Binding{VM: vm, PCI: g.PCI})
		}
		if vm := h.PCI.Holder(g.PCI); vm.Value != "" {
			out = append(out, collector.Binding{VM: vm, PCI: g.PCI})
		}
	}
	return out
}

// modes returns the DirectPath modes of the GPUs of a host.
func (w *Server) modes(host vcsim.Ref) map[string]collector.DirectPathState {
	out := map[string]collector.DirectPathState{}
	h := w.hosts.ByRef(host)
	if h == nil {
		return out
	}
	for _, g := range h.Hardware.GPUs {
		mode, possible := h.Graphics.Modes(g)
		out[g.PCI] = collector.DirectPathState{Mode: mode, ConfigurableModes: possible}
	}
	return out
}

// PutObject repairs new virtual machines and adds the parts of new hosts.
func (h *hook) PutObject(ctx *simulator.Context, o mo.Reference) {
	if entity, ok := o.(mo.Entity); ok {
		entity.Entity().Name = escapedName(entity.Entity().Name)
	}
	switch x := o.(type) {
	case *simulator.VirtualMachine:
		repairVM(x)
	case *simulator.HostSystem:
		h.server.clusters.AddVsan(ctx, h.server.hosts.Add(ctx, x).Host)
	}
}

// UpdateObject wakes callers that wait for a task.
func (h *hook) UpdateObject(_ *simulator.Context, o mo.Reference, _ []types.PropertyChange) {
	if task, ok := o.(*mo.Task); ok {
		h.server.sim.Changed(task.Self)
	}
}

// RemoveObject removes the data of a host that left the inventory.
func (h *hook) RemoveObject(_ *simulator.Context, gone types.ManagedObjectReference) {
	h.server.hosts.Remove(gone)
	h.server.sim.Disown(gone)
}

// receiver returns the object that answers a call. The registered objects remain those of vcsim, because vcsim
// asserts their types; the methods that this simulator answers belong to wrappers.
func (w *Server) receiver(_ *simulator.Context, m *simulator.Method) (mo.Reference, vcsim.Fault) {
	if f := w.tooNew(m); f != nil {
		return nil, f
	}
	wrapper := w.wrapper(m.This)
	if wrapper == nil || !reflect.ValueOf(wrapper).MethodByName(vcsim.GoName(m.Name)).IsValid() {
		return nil, nil
	}
	// vcsim also looks up the object in the session, and would prefer it to the wrapper: a reference that it cannot
	// find prevents this. The call's body keeps the original.
	m.This.Value += "+lab"
	return wrapper, nil
}

// tooNew refuses a method that the version of the vCenter does not support.
// VMware: the type tables of pyVmomi 9.1 have the version of each method.
// Ours: InvalidRequest as the fault (unproven).
func (w *Server) tooNew(m *simulator.Method) vcsim.Fault {
	if w.sim.Knows.Method(m.This.Type, m.Name) {
		return nil
	}
	return new(types.InvalidRequest)
}

func (w *Server) wrapper(this vcsim.Ref) mo.Reference {
	object := w.sim.Registry.Get(this)
	if h := w.hosts.ByRef(w.Owner(this)); h != nil {
		if wrapped := h.Receiver(object); wrapped != nil {
			return wrapped
		}
	}
	return w.ownReceiver(object)
}

// ownReceiver returns the object that answers calls to an object of the vCenter, or nil if vcsim answers.
func (w *Server) ownReceiver(object mo.Reference) mo.Reference {
	switch o := object.(type) {
	case *simulator.ClusterComputeResource:
		if w.sim.Complete.Load() {
			return &cluster.Methods{ClusterComputeResource: o, Sim: w.sim}
		}
	case *simulator.ServiceInstance:
		return &clockMethods{self: o.Self, sim: w.sim}
	case *simulator.Folder:
		return &folderMethods{Folder: o, sim: w.sim, fabric: w.hosts.Fabric}
	case *simulator.DistributedVirtualSwitch:
		return &dvs.SwitchMethods{DistributedVirtualSwitch: o, Sim: w.sim, Fabric: w.hosts.Fabric}
	case *simulator.DistributedVirtualPortgroup:
		return &dvs.PortgroupMethods{DistributedVirtualPortgroup: o, Sim: w.sim, Fabric: w.hosts.Fabric}
	case *simulator.VirtualMachine:
		return w.machines.Methods(o)
	case *simulator.VmProvisioningChecker:
		return &vm.CheckerMethods{VmProvisioningChecker: o, Machines: w.machines, Sim: w.sim}
	case *simulator.EnvironmentBrowser:
		return &cluster.BrowserMethods{EnvironmentBrowser: o, Registered: w.hosts, Knows: w.sim.Knows}
	case *simulator.OptionManager:
		return &options.Methods{OptionManager: o}
	case *simulator.PerformanceManager:
		return &counters.Methods{PerformanceManager: o, Hosts: w.hosts, Sim: w.sim}
	case *simulator.ViewManager:
		return &collector.ViewMethods{ViewManager: o}
	case *simulator.SearchIndex:
		return &searchMethods{SearchIndex: o, sim: w.sim}
	case *simulator.CustomFieldsManager:
		return &fieldMethods{CustomFieldsManager: o, sim: w.sim}
	case *simulator.AuthorizationManager:
		return &authorizationMethods{AuthorizationManager: o}
	}
	return nil
}

// repairVM sets faultToleranceState and recordReplayState, which vcsim leaves empty, and a name. Remove the two states
// with govmomi 0.57, which sets them (#4112).
// VMware: vSphere API reference, VirtualMachineRuntimeInfo. An empty value stops pyVmomi (govmomi issue 4084).
// Ours: vcsim sets the name later, and crashes if another client searches virtual machines by name meanwhile.
func repairVM(vm *simulator.VirtualMachine) {
	if vm.Name == "" {
		vm.Name = vm.Self.Value
	}
	for _, r := range []*types.VirtualMachineRuntimeInfo{&vm.Runtime, &vm.Summary.Runtime} {
		r.FaultToleranceState = types.VirtualMachineFaultToleranceStateNotConfigured
		r.RecordReplayState = types.VirtualMachineRecordReplayStateInactive
	}
}
