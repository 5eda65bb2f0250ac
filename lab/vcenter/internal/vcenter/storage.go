package vcenter

import (
	"slices"
	"strconv"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vm"
)

// Disks returns the keys of the disks of all virtual machines.
func (w *Server) Disks() map[string][]string {
	found := map[string][]string{}
	for _, o := range w.sim.Registry.AllReference("VirtualMachine") {
		one := o.(*simulator.VirtualMachine)
		w.sim.Context().WithLock(one, func() {
			keys := []string{}
			devices := object.VirtualDeviceList(one.Config.Hardware.Device)
			for _, d := range devices.SelectByType((*types.VirtualDisk)(nil)) {
				keys = append(keys, strconv.Itoa(int(d.GetVirtualDevice().Key)))
			}
			found[one.Self.Value] = keys
		})
	}
	return found
}

// HasFitting reports whether all datastores of a virtual machine fit a policy with a name.
func (w *Server) HasFitting(machine, policy string) bool {
	one, ok := w.sim.Registry.Get(reference(machine)).(*simulator.VirtualMachine)
	if !ok {
		return false
	}
	var stores []string
	w.sim.Context().WithLock(one, func() {
		for _, ref := range one.Datastore {
			stores = append(stores, ref.Value)
		}
	})
	return len(w.Fitting(policy, stores)) == len(stores)
}

// Fitting returns those of some datastores that fit a policy with a name.
func (w *Server) Fitting(policy string, datastores []string) []string {
	names, limited := w.sim.Description.StoragePolicies[policy]
	found := []string{}
	for _, id := range datastores {
		name := w.sim.Name(types.ManagedObjectReference{Type: "Datastore", Value: id})
		if !limited || slices.Contains(names, name) {
			found = append(found, id)
		}
	}
	return found
}

// Policies returns the storage policies of the home and of the disks of a virtual machine.
func (w *Server) Policies(machine string) (string, map[string]string) {
	one := w.machines.Profiles(reference(machine))
	return one.Home, one.Disks
}

// SetPolicies sets the storage policies of a virtual machine.
func (w *Server) SetPolicies(machine, home string, disks map[string]string) {
	w.machines.SetProfiles(reference(machine), vm.Profiles{Home: home, Disks: disks})
}

func reference(machine string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "VirtualMachine", Value: machine}
}
