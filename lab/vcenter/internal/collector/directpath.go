package collector

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

const passthruPath = "config.pciPassthruInfo"

// DirectPathState is the mode of a PCI device, and the modes that it could have.
type DirectPathState struct {
	Mode              string   `xml:"mode"`
	ConfigurableModes []string `xml:"configurableModes,omitempty"`
}

// HostPciPassthruInfo is the type of vSphere 9.1; that of govmomi has no directPathState yet.
type HostPciPassthruInfo struct {
	types.HostPciPassthruInfo
	DirectPathState *DirectPathState `xml:"directPathState,omitempty"`
}

// ArrayOfHostPciPassthruInfo is a list of devices as the value of a property.
type ArrayOfHostPciPassthruInfo struct {
	HostPciPassthruInfo []any `xml:"HostPciPassthruInfo,omitempty,typeattr"`
}

// addDirectPath adds the modes of GPUs to the devices of hosts, from 9.1 on.
// VMware: the type tables of pyVmomi 9.1, HostPciPassthruInfo.directPathState and the names of the modes.
// Ours: only GPUs have a mode; a GPU could have every mode that its driver and its model support (all unproven).
func addDirectPath(ctx *simulator.Context, objects []types.ObjectContent) {
	source := ctx.Map.Get(clusterSourceRef).(*clusterSource)
	if !source.knows.Since("9.1.0.0") {
		return
	}
	for i, o := range objects {
		for j, p := range o.PropSet {
			if list, ok := p.Val.(types.ArrayOfHostPciPassthruInfo); ok && p.Name == passthruPath {
				objects[i].PropSet[j].Val = source.withModes(o.Obj, list)
			}
		}
	}
}

func (s *clusterSource) withModes(host vcsim.Ref, list types.ArrayOfHostPciPassthruInfo) ArrayOfHostPciPassthruInfo {
	modes := s.modes(host)
	var out ArrayOfHostPciPassthruInfo
	for _, one := range list.HostPciPassthruInfo {
		info, plain := one.(*types.HostPciPassthruInfo)
		if state, ok := modes[one.GetHostPciPassthruInfo().Id]; ok && plain {
			out.HostPciPassthruInfo = append(out.HostPciPassthruInfo,
				&HostPciPassthruInfo{HostPciPassthruInfo: *info, DirectPathState: &state})
			continue
		}
		out.HostPciPassthruInfo = append(out.HostPciPassthruInfo, one)
	}
	return out
}
