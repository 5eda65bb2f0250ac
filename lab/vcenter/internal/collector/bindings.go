package collector

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

const bindingsPath = "config.assignableHardwareBinding"

// Binding is a PCI device of a host that a virtual machine uses, as a whole or as a vGPU.
type Binding struct {
	VM  vcsim.Ref
	PCI string
}

// HostAssignableHardwareBinding is the type of vSphere 9.1; that of govmomi has no pciId yet.
type HostAssignableHardwareBinding struct {
	types.DynamicData
	InstanceId string                       `xml:"instanceId"`
	Vm         types.ManagedObjectReference `xml:"vm"`
	PciId      string                       `xml:"pciId,omitempty"`
}

// ArrayOfHostAssignableHardwareBinding is a list of bindings as the value of a property.
type ArrayOfHostAssignableHardwareBinding struct {
	HostAssignableHardwareBinding []HostAssignableHardwareBinding `xml:"HostAssignableHardwareBinding,omitempty"`
}

// addBindings adds the devices of virtual machines to hosts whose bindings are requested by their path, from 9.1 on.
// VMware: the type tables of pyVmomi 9.1, HostAssignableHardwareBinding.pciId.
// Ours: one binding for each vGPU, with the address of its physical GPU; the text of instanceId; no binding before 9.1
// (all unproven).
func addBindings(ctx *simulator.Context, specs []types.PropertyFilterSpec, objects []types.ObjectContent) {
	source := ctx.Map.Get(clusterSourceRef).(*clusterSource)
	if !source.knows.Since("9.1.0.0") || !slices.ContainsFunc(specs, asksForBindings) {
		return
	}
	for i, o := range objects {
		if o.Obj.Type != "HostSystem" {
			continue
		}
		var list ArrayOfHostAssignableHardwareBinding
		for _, b := range source.bindings(o.Obj) {
			list.HostAssignableHardwareBinding = append(list.HostAssignableHardwareBinding,
				HostAssignableHardwareBinding{InstanceId: "pci:" + b.PCI, Vm: b.VM, PciId: b.PCI})
		}
		if len(list.HostAssignableHardwareBinding) > 0 {
			objects[i].PropSet = append(o.PropSet, types.DynamicProperty{Name: bindingsPath, Val: list})
		}
	}
}

func asksForBindings(spec types.PropertyFilterSpec) bool {
	return slices.ContainsFunc(spec.PropSet, func(set types.PropertySpec) bool {
		return set.Type == "HostSystem" && slices.Contains(set.PathSet, bindingsPath)
	})
}
