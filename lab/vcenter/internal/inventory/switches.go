package inventory

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/dvs"
	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// distributedSwitch creates a switch of the description with its port groups and hosts.
func (b *builder) distributedSwitch(ctx context.Context, s datacentre.Switch) error {
	made, err := b.createSwitch(ctx, s)
	if err != nil {
		return err
	}
	var groups []types.DVPortgroupConfigSpec
	for _, g := range s.Portgroups {
		groups = append(groups, portgroupSpec(g, len(s.Uplinks)))
	}
	if len(groups) > 0 {
		self := object.NewDistributedVirtualSwitch(b.sim.Client, made.Self)
		if _, err := b.sim.Result(self.AddPortgroup(ctx, groups)); err != nil {
			return err
		}
	}
	dvs.Finish(b.sim, made.Self)
	return b.joinHosts(ctx, made, s)
}

func (b *builder) createSwitch(ctx context.Context, s datacentre.Switch) (*simulator.DistributedVirtualSwitch, error) {
	names := []string{}
	for i := range max(len(s.Uplinks), 1) {
		names = append(names, fmt.Sprintf("%s%d", network.UplinkName, i+1))
	}
	config := &types.VMwareDVSConfigSpec{MaxMtu: s.MTU,
		LinkDiscoveryProtocolConfig: &types.LinkDiscoveryProtocolConfig{Protocol: "cdp", Operation: "listen"}}
	config.Name = s.Name
	config.UplinkPortPolicy = &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: names}
	product := &types.DistributedVirtualSwitchProductSpec{Vendor: "VMware, Inc.", Version: "8.0.3", Name: "DVS",
		ForwardingClass: "etherswitch"}
	spec := types.DVSCreateSpec{ConfigSpec: config, ProductInfo: product}
	made, err := b.sim.Result(b.folders.NetworkFolder.CreateDVS(ctx, spec))
	if err != nil {
		return nil, err
	}
	return b.sim.Registry.Get(made.(vcsim.Ref)).(*simulator.DistributedVirtualSwitch), nil
}

func portgroupSpec(g datacentre.Portgroup, uplinks int) types.DVPortgroupConfigSpec {
	active := g.Active
	if active == nil {
		for i := range max(uplinks, 1) {
			active = append(active, fmt.Sprintf("%s%d", network.UplinkName, i+1))
		}
	}
	return types.DVPortgroupConfigSpec{
		Name: g.Name, NumPorts: 64, Type: string(types.DistributedVirtualPortgroupPortgroupTypeEarlyBinding),
		AutoExpand: types.NewBool(true),
		DefaultPortConfig: &types.VMwareDVSPortSetting{
			Vlan: &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: g.VLAN},
			UplinkTeamingPolicy: &types.VmwareUplinkPortTeamingPolicy{
				Policy:          &types.StringPolicy{Value: "loadbalance_srcid"},
				NotifySwitches:  &types.BoolPolicy{Value: types.NewBool(true)},
				RollingOrder:    &types.BoolPolicy{Value: types.NewBool(false)},
				UplinkPortOrder: &types.VMwareUplinkPortOrderPolicy{ActiveUplinkPort: active},
			},
		},
	}
}

// joinHosts adds every host that has one of the uplinks to the switch, with its vmkernel adapters.
func (b *builder) joinHosts(ctx context.Context, dvs *simulator.DistributedVirtualSwitch, s datacentre.Switch) error {
	spec := &types.VMwareDVSConfigSpec{}
	for _, o := range b.added {
		h := b.fabric.ByRef(o.Reference())
		if uplinks := h.UplinksFor(s); len(uplinks) > 0 {
			self := o.Reference()
			spec.Host = append(spec.Host, types.DistributedVirtualSwitchHostMemberConfigSpec{
				Operation: string(types.ConfigSpecOperationAdd), Host: self, Backing: pnicBacking(uplinks),
			})
		}
	}
	self := object.NewDistributedVirtualSwitch(b.sim.Client, dvs.Self)
	if _, err := b.sim.Result(self.Reconfigure(ctx, spec)); err != nil {
		return err
	}
	for _, m := range spec.Host {
		b.fabric.ByRef(m.Host).AddAdapters(b.sim.Context(), dvs, s)
	}
	return nil
}

func pnicBacking(uplinks []string) *types.DistributedVirtualSwitchHostMemberPnicBacking {
	backing := &types.DistributedVirtualSwitchHostMemberPnicBacking{}
	for _, u := range uplinks {
		backing.PnicSpec = append(backing.PnicSpec, types.DistributedVirtualSwitchHostMemberPnicSpec{PnicDevice: u})
	}
	return backing
}
