package network

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// MissingUplink returns the fault of an uplink that the host does not have.
func (s *System) MissingUplink(backing types.BaseDistributedVirtualSwitchHostMemberBacking) vcsim.Fault {
	b, ok := backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking)
	if !ok {
		return nil
	}
	for _, p := range b.PnicSpec {
		if !slices.ContainsFunc(s.Current().Info.Pnic, func(n types.PhysicalNic) bool {
			return n.Device == p.PnicDevice
		}) {
			return &types.InvalidArgument{InvalidProperty: "spec.host.backing.pnicSpec.pnicDevice"}
		}
	}
	return nil
}

// JoinSwitch shows a distributed switch on the host as a proxy switch with its uplinks and MTU.
// VMware: vSphere API reference, HostProxySwitch.
func (s *System) JoinSwitch(
	ctx *simulator.Context, config *types.VMwareDVSConfigInfo,
	backing types.BaseDistributedVirtualSwitchHostMemberBacking,
) {
	proxy := types.HostProxySwitch{DvsUuid: config.Uuid, DvsName: config.Name, NumPorts: 2048, ConfigNumPorts: 2048,
		NumPortsAvailable: 2040,
		Mtu:               config.MaxMtu, Spec: types.HostProxySwitchSpec{Backing: backing}}
	if b, ok := backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking); ok {
		for i, p := range b.PnicSpec {
			proxy.Pnic = append(proxy.Pnic, pnicKey+p.PnicDevice)
			proxy.UplinkPort = append(proxy.UplinkPort,
				types.KeyValue{Key: strconv.Itoa(i), Value: fmt.Sprintf("%s%d", UplinkName, i+1)})
		}
	}
	s.change(ctx, func(net *State) vcsim.Fault {
		list := slices.Clone(net.Info.ProxySwitch)
		i := slices.IndexFunc(list, func(p types.HostProxySwitch) bool { return p.DvsUuid == config.Uuid })
		if i < 0 {
			proxy.Key = fmt.Sprintf("DvsPortset-%d", len(list))
			list = append(list, proxy)
		} else {
			proxy.Key = list[i].Key
			list[i] = proxy
		}
		net.Info.ProxySwitch = list
		return nil
	})
}

// LeaveSwitch removes a distributed switch from the host.
func (s *System) LeaveSwitch(ctx *simulator.Context, uuid string) {
	s.change(ctx, func(net *State) vcsim.Fault {
		net.Info.ProxySwitch = slices.DeleteFunc(slices.Clone(net.Info.ProxySwitch),
			func(p types.HostProxySwitch) bool { return p.DvsUuid == uuid })
		return nil
	})
}

// UplinksFor returns the host's NICs that the description assigns to a switch.
func (s *System) UplinksFor(spec datacentre.Switch) []string {
	wanted, own := s.host.Spec.Uplinks[spec.Name]
	if !own {
		wanted = spec.Uplinks
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(device string) bool {
		return !slices.ContainsFunc(s.host.Hardware.NICs, func(n datacentre.NIC) bool { return n.Device == device })
	})
}

// AddAdapters adds the vmkernel adapters of the description on a distributed switch.
func (s *System) AddAdapters(ctx *simulator.Context, dvs *simulator.DistributedVirtualSwitch, spec datacentre.Switch) {
	s.change(ctx, func(*State) vcsim.Fault {
		for _, v := range s.host.Spec.Vmkernel {
			if v.Switch != spec.Name {
				continue
			}
			for _, pg := range dvs.Portgroup {
				if s.host.Sim.Registry.Get(pg).(*simulator.DistributedVirtualPortgroup).Name == v.Portgroup {
					s.addVmkernel(v, &types.DistributedVirtualSwitchPortConnection{
						SwitchUuid: dvs.Uuid, PortgroupKey: pg.Value, PortKey: "0"})
				}
			}
		}
		return nil
	})
}

// RemoveNetworks removes networks from the host, and from its cluster if no other host has them.
// VMware: vSphere API reference, HostSystem.network, ComputeResource.network. vcsim keeps removed networks there.
func (s *System) RemoveNetworks(ctx *simulator.Context, gone ...vcsim.Ref) {
	lost := func(r vcsim.Ref) bool { return slices.Contains(gone, r) }
	ctx.WithLock(s.host.Entity, func() {
		ctx.Update(s.host.Entity, []types.PropertyChange{
			vcsim.Change("network", slices.DeleteFunc(slices.Clone(s.host.Entity.Network), lost))})
	})
	cluster, ok := s.host.Sim.Registry.Get(*s.host.Entity.Parent).(*simulator.ClusterComputeResource)
	if !ok {
		return
	}
	kept := map[vcsim.Ref]bool{}
	for _, r := range cluster.Host {
		other := s.host.Sim.Registry.Get(r).(*simulator.HostSystem)
		ctx.WithLock(other, func() {
			for _, n := range other.Network {
				kept[n] = true
			}
		})
	}
	ctx.WithLock(cluster, func() {
		networks := slices.DeleteFunc(slices.Clone(cluster.Network), func(r vcsim.Ref) bool {
			return lost(r) && !kept[r]
		})
		ctx.Update(cluster, []types.PropertyChange{vcsim.Change("network", networks)})
	})
}
