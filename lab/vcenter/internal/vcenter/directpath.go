package vcenter

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/host/graphics"
	"dml.vsphere/lab/vcenter/internal/host/pci"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// directPathManager is the DirectPathProfileManager: how many more vGPUs of a type fit on a host or in a cluster.
type directPathManager struct {
	mo.DirectPathProfileManager
	sim   *vcsim.Sim
	hosts *esxi.Hosts
}

var directPathRef = vcsim.Ref{Type: "DirectPathProfileManager", Value: "DirectPathProfileManager"}

// installDirectPath adds the manager to a vCenter that has it.
// VMware: the type tables of pyVmomi 9.1: ServiceContent.directPathProfileManager came with 9.0.
// Ours: its id (unproven).
func installDirectPath(sim *vcsim.Sim, hosts *esxi.Hosts) {
	if !sim.Knows.Since("9.0.0.0") {
		return
	}
	m := &directPathManager{sim: sim, hosts: hosts}
	m.Self = directPathRef
	sim.Registry.Put(m)
	sim.Registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content.DirectPathProfileManager = &m.Self
}

// DirectPathProfileManagerQueryCapacity returns the capacity of a host or a cluster for vGPU types, one result for
// each query, in their order. The data centre has no DirectPath profiles, so that queries by id or name find none.
// VMware: govmomi's types of vSphere 9.0, with VMware's words: units in use by powered-on virtual machines, remaining,
// total on the empty target, and reserved without a user; an unknown profile is a CapacityUnknown with its faults.
// Ours: a vGPU type needs no profile to be queried by its device configuration; id and name of the profile in the
// result; NotFound as the fault; hosts out of service count for their cluster (all unproven).
func (m *directPathManager) DirectPathProfileManagerQueryCapacity(
	_ *simulator.Context, req *types.DirectPathProfileManagerQueryCapacity,
) soap.HasFault {
	body := new(methods.DirectPathProfileManagerQueryCapacityBody)
	hosts := m.hostsOf(req.Target)
	if len(hosts) == 0 {
		body.Fault_ = vcsim.SoapFault(&types.InvalidArgument{InvalidProperty: "target"})
		return body
	}
	res := new(types.DirectPathProfileManagerQueryCapacityResponse)
	for _, query := range req.QuerySpec {
		res.Returnval = append(res.Returnval, m.capacity(hosts, query))
	}
	body.Res = res
	return body
}

// DirectPathProfileManagerList returns no profile, because the data centre has none.
// VMware: govmomi's types of vSphere 9.0.
func (m *directPathManager) DirectPathProfileManagerList(
	*types.DirectPathProfileManagerList,
) soap.HasFault {
	return &methods.DirectPathProfileManagerListBody{Res: new(types.DirectPathProfileManagerListResponse)}
}

func (m *directPathManager) hostsOf(target types.BaseDirectPathProfileManagerTargetEntity) []*esxi.Host {
	switch t := target.(type) {
	case *types.DirectPathProfileManagerTargetHost:
		if h := m.hosts.ByRef(t.Host); h != nil {
			return []*esxi.Host{h}
		}
	case *types.DirectPathProfileManagerTargetCluster:
		var out []*esxi.Host
		for _, h := range m.hosts.All() {
			if h.Entity.Parent != nil && *h.Entity.Parent == t.Cluster {
				out = append(out, h)
			}
		}
		return out
	}
	return nil
}

func (m *directPathManager) capacity(
	hosts []*esxi.Host, query types.BaseDirectPathProfileManagerCapacityQuerySpec,
) types.BaseDirectPathProfileManagerCapacityResult {
	if config := dvxConfig(query); config != nil {
		return dvxCapacity(hosts, config)
	}
	name := vgpuType(query)
	if _, known := graphics.ProfileOf(m.sim.Description, name); !known {
		return &types.DirectPathProfileManagerCapacityUnknown{QuerySpec: query,
			FaultList: []types.LocalizedMethodFault{{Fault: new(types.NotFound),
				LocalizedMessage: "The DirectPath profile was not found."}}}
	}
	out := &types.DirectPathProfileManagerCapacityInfo{Profile: types.DirectPathProfileInfo{Id: name, Name: name,
		VendorName: pci.NVIDIA, DeviceConfig: &types.DirectPathProfileManagerVmiopDirectPathConfig{VgpuProfile: name}}}
	for _, h := range hosts {
		c := h.Graphics.Capacity(name)
		out.Consumed += c.Consumed
		out.Remaining += c.Remaining
		out.Max += c.Max
		out.UnusedReservation += c.Unused
	}
	return out
}

// dvxConfig returns the configuration of a query for a class of Enhanced DirectPath devices, or nil for other queries.
func dvxConfig(
	query types.BaseDirectPathProfileManagerCapacityQuerySpec,
) *types.DirectPathProfileManagerDvxDirectPathConfig {
	by, ok := query.(*types.DirectPathProfileManagerCapacityQueryByDeviceConfig)
	if !ok {
		return nil
	}
	config, _ := by.DeviceConfig.(*types.DirectPathProfileManagerDvxDirectPathConfig)
	return config
}

func dvxCapacity(
	hosts []*esxi.Host, config *types.DirectPathProfileManagerDvxDirectPathConfig,
) types.BaseDirectPathProfileManagerCapacityResult {
	name := config.DvxBacking.DeviceClass
	out := &types.DirectPathProfileManagerCapacityInfo{
		Profile: types.DirectPathProfileInfo{Id: name, Name: name, DeviceConfig: config}}
	for _, h := range hosts {
		all, used := h.PCI.DVX(name)
		out.Consumed += int32(used)
		out.Remaining += int32(all - used)
		out.Max += int32(all)
	}
	return out
}

// vgpuType returns the vGPU type of a query by device configuration, or "" for other queries.
func vgpuType(query types.BaseDirectPathProfileManagerCapacityQuerySpec) string {
	by, ok := query.(*types.DirectPathProfileManagerCapacityQueryByDeviceConfig)
	if !ok {
		return ""
	}
	if config, ok := by.DeviceConfig.(*types.DirectPathProfileManagerVmiopDirectPathConfig); ok {
		return config.VgpuProfile
	}
	return ""
}
