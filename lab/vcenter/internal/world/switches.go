package world

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// distributedSwitch makes a switch of the description with its port groups and hosts.
func (b *builder) distributedSwitch(ctx context.Context, s datacentre.Switch) error {
	dvs, err := b.createSwitch(ctx, s)
	if err != nil {
		return err
	}
	var groups []types.DVPortgroupConfigSpec
	for _, g := range s.Portgroups {
		groups = append(groups, portgroupSpec(g, len(s.Uplinks)))
	}
	if len(groups) > 0 {
		task, err := object.NewDistributedVirtualSwitch(b.world.client, dvs.Self).AddPortgroup(ctx, groups)
		if err != nil {
			return err
		}
		if err := task.Wait(ctx); err != nil {
			return err
		}
	}
	b.world.finishSwitch(dvs)
	return b.joinHosts(ctx, dvs, s)
}

func (b *builder) createSwitch(ctx context.Context, s datacentre.Switch) (*simulator.DistributedVirtualSwitch, error) {
	names := []string{}
	for i := range max(len(s.Uplinks), 1) {
		names = append(names, fmt.Sprintf("%s%d", uplinkName, i+1))
	}
	config := &types.VMwareDVSConfigSpec{MaxMtu: s.MTU, LinkDiscoveryProtocolConfig: &types.LinkDiscoveryProtocolConfig{Protocol: "cdp", Operation: "listen"}}
	config.Name = s.Name
	config.UplinkPortPolicy = &types.DVSNameArrayUplinkPortPolicy{UplinkPortName: names}
	product := &types.DistributedVirtualSwitchProductSpec{Vendor: "VMware, Inc.", Version: "8.0.3", Name: "DVS", ForwardingClass: "etherswitch"}
	task, err := b.folders.NetworkFolder.CreateDVS(ctx, types.DVSCreateSpec{ConfigSpec: config, ProductInfo: product})
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(ctx, nil)
	if err != nil {
		return nil, err
	}
	return b.world.reg.Get(info.Result.(ref)).(*simulator.DistributedVirtualSwitch), nil
}

func portgroupSpec(g datacentre.Portgroup, uplinks int) types.DVPortgroupConfigSpec {
	active := g.Active
	if active == nil {
		for i := range max(uplinks, 1) {
			active = append(active, fmt.Sprintf("%s%d", uplinkName, i+1))
		}
	}
	return types.DVPortgroupConfigSpec{
		Name: g.Name, NumPorts: 64, Type: string(types.DistributedVirtualPortgroupPortgroupTypeEarlyBinding), AutoExpand: types.NewBool(true),
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

// finishSwitch fills in what vcsim leaves empty when a switch is made.
func (w *World) finishSwitch(dvs *simulator.DistributedVirtualSwitch) {
	config := dvs.Config.(*types.VMwareDVSConfigInfo)
	config.ConfigVersion, config.UplinkPortgroup = "1", nil
	for _, pg := range dvs.Portgroup {
		group := w.reg.Get(pg).(*simulator.DistributedVirtualPortgroup)
		group.Config.ConfigVersion = "1"
		isUplink := strings.Contains(group.Name, "-DVUplinks")
		group.Config.Uplink = &isUplink
		if isUplink {
			config.UplinkPortgroup = append(config.UplinkPortgroup, pg)
			group.Tag = []types.Tag{{Key: "SYSTEM/DVS.UPLINKPG"}}
		}
	}
}

// joinHosts lets every host that has one of the uplinks join the switch, and puts its vmkernel adapters on it.
func (b *builder) joinHosts(ctx context.Context, dvs *simulator.DistributedVirtualSwitch, s datacentre.Switch) error {
	spec := &types.VMwareDVSConfigSpec{}
	for _, o := range b.hosts {
		h := b.world.host(o.Reference())
		if uplinks := h.uplinksFor(s); len(uplinks) > 0 {
			self := h.self
			spec.Host = append(spec.Host, types.DistributedVirtualSwitchHostMemberConfigSpec{
				Operation: string(types.ConfigSpecOperationAdd), Host: self, Backing: pnicBacking(uplinks),
			})
		}
	}
	task, err := object.NewDistributedVirtualSwitch(b.world.client, dvs.Self).Reconfigure(ctx, spec)
	if err != nil {
		return err
	}
	if err := task.Wait(ctx); err != nil {
		return err
	}
	for _, m := range spec.Host {
		b.world.host(m.Host).placeOn(b.world.context(), dvs, s)
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

// uplinksFor are the NICs of the host that go to a switch of the description.
func (h *Host) uplinksFor(s datacentre.Switch) []string {
	wanted, own := h.spec.Uplinks[s.Name]
	if !own {
		wanted = s.Uplinks
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(device string) bool {
		return !slices.ContainsFunc(h.kit.NICs, func(n datacentre.NIC) bool { return n.Device == device })
	})
}

// placeOn puts the description's vmkernel adapters on a distributed switch.
func (h *Host) placeOn(ctx *simulator.Context, dvs *simulator.DistributedVirtualSwitch, s datacentre.Switch) {
	h.changeNetwork(ctx, func(*network) types.BaseMethodFault {
		for _, v := range h.spec.Vmkernel {
			if v.Switch != s.Name {
				continue
			}
			for _, pg := range dvs.Portgroup {
				if h.world.reg.Get(pg).(*simulator.DistributedVirtualPortgroup).Name == v.Portgroup {
					h.placeVmkernel(v, &types.DistributedVirtualSwitchPortConnection{SwitchUuid: dvs.Uuid, PortgroupKey: pg.Value, PortKey: "0"})
				}
			}
		}
		return nil
	})
}
