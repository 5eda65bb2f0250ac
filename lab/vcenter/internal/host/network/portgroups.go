package network

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// AddVirtualSwitch adds a standard switch, also in config.network.
// VMware: vSphere API reference, HostNetworkSystem.AddVirtualSwitch. vcsim changes only networkInfo.
func (n *SystemMethods) AddVirtualSwitch(ctx *simulator.Context, req *types.AddVirtualSwitch) soap.HasFault {
	body := n.HostNetworkSystem.AddVirtualSwitch(req)
	n.adopt(ctx, body)
	return body
}

// RemoveVirtualSwitch removes a standard switch.
// VMware: vSphere API reference, HostNetworkSystem.RemoveVirtualSwitch. vcsim changes only networkInfo.
func (n *SystemMethods) RemoveVirtualSwitch(ctx *simulator.Context, req *types.RemoveVirtualSwitch) soap.HasFault {
	body := n.HostNetworkSystem.RemoveVirtualSwitch(req)
	n.adopt(ctx, body)
	return body
}

// AddPortGroup adds a port group to a standard switch. Port groups with the same name on several hosts are one
// network.
// VMware: vSphere API reference, HostNetworkSystem.AddPortGroup: AlreadyExists on the same host. vcsim returns
// DuplicateName on a second host.
func (n *SystemMethods) AddPortGroup(ctx *simulator.Context, req *types.AddPortGroup) soap.HasFault {
	name, current := req.Portgrp.Name, n.Network.Current()
	if current.group(name) >= 0 {
		return &methods.AddPortGroupBody{Fault_: vcsim.SoapFault(&types.AlreadyExists{Name: name})}
	}
	if len(n.Network.fabric.withGroup(name)) == 0 {
		body := n.HostNetworkSystem.AddPortGroup(ctx, req)
		n.adopt(ctx, body)
		return body
	}
	fault := n.Network.change(ctx, func(net *State) vcsim.Fault {
		at := slices.IndexFunc(net.Info.Vswitch, func(s types.HostVirtualSwitch) bool {
			return s.Name == req.Portgrp.VswitchName
		})
		if at < 0 {
			return new(types.NotFound)
		}
		net.Info.Vswitch, net.Info.Portgroup = slices.Clone(net.Info.Vswitch), slices.Clone(net.Info.Portgroup)
		sw := &net.Info.Vswitch[at]
		sw.Portgroup = append(slices.Clone(sw.Portgroup), groupKey+name)
		net.Info.Portgroup = append(net.Info.Portgroup, types.HostPortGroup{Key: groupKey + name, Vswitch: sw.Key,
			Spec: req.Portgrp})
		return nil
	})
	if fault != nil {
		return &methods.AddPortGroupBody{Fault_: vcsim.SoapFault(fault)}
	}
	return &methods.AddPortGroupBody{Res: new(types.AddPortGroupResponse)}
}

// RemovePortGroup removes a port group of this host; the network is removed with its last port group.
// VMware: vSphere API reference, HostNetworkSystem.RemovePortGroup: NotFound. vcsim removes the network of all hosts.
func (n *SystemMethods) RemovePortGroup(ctx *simulator.Context, req *types.RemovePortGroup) soap.HasFault {
	current := n.Network.Current()
	if current.group(req.PgName) < 0 {
		return &methods.RemovePortGroupBody{Fault_: vcsim.SoapFault(new(types.NotFound))}
	}
	if len(n.Network.fabric.withGroup(req.PgName)) == 1 {
		// vcsim searches for the plain name, but a vCenter shows a key
		sw := &n.NetworkInfo.Vswitch[0]
		sw.Portgroup = append(slices.Clone(sw.Portgroup), req.PgName)
		body := n.HostNetworkSystem.RemovePortGroup(ctx, req)
		if body.Fault() != nil {
			return body
		}
	}
	_ = n.Network.change(ctx, func(net *State) vcsim.Fault {
		net.Info.Vswitch = slices.Clone(net.Info.Vswitch)
		for i, s := range net.Info.Vswitch {
			net.Info.Vswitch[i].Portgroup = slices.DeleteFunc(slices.Clone(s.Portgroup), func(key string) bool {
				return key == groupKey+req.PgName || key == req.PgName
			})
		}
		net.Info.Portgroup = slices.Delete(slices.Clone(net.Info.Portgroup), net.group(req.PgName),
			net.group(req.PgName)+1)
		return nil
	})
	return &methods.RemovePortGroupBody{Res: new(types.RemovePortGroupResponse)}
}

// adopt copies the switches and port groups that vcsim has changed in networkInfo.
func (n *SystemMethods) adopt(ctx *simulator.Context, body soap.HasFault) {
	if body.Fault() != nil || n.NetworkInfo == nil {
		return
	}
	_ = n.Network.change(ctx, func(net *State) vcsim.Fault {
		net.Info.Vswitch = slices.Clone(n.NetworkInfo.Vswitch)
		net.Info.Portgroup = slices.Clone(n.NetworkInfo.Portgroup)
		return nil
	})
}

func (n *State) group(name string) int {
	return slices.IndexFunc(n.Info.Portgroup, func(g types.HostPortGroup) bool { return g.Spec.Name == name })
}

// withGroup returns the hosts with a port group of a name.
func (f *Fabric) withGroup(name string) []*System {
	return slices.DeleteFunc(f.All(), func(s *System) bool {
		current := s.Current()
		return current.group(name) < 0
	})
}
