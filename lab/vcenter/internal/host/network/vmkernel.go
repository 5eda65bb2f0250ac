package network

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// SystemMethods answers the calls to a host's network system that vcsim lacks.
type SystemMethods struct {
	*simulator.HostNetworkSystem
	Network *System
}

const LeastMTU, mostMTU = 1280, 9000

// AddVirtualNic adds a vmkernel adapter with the lowest free name vmkN.
// VMware: vSphere API reference, HostNetworkSystem.AddVirtualNic returns the device name.
// Ours: NotFound and InvalidArgument for an invalid port group, which are not among the declared faults (unproven).
func (n *SystemMethods) AddVirtualNic(ctx *simulator.Context, req *types.AddVirtualNic) soap.HasFault {
	body := new(methods.AddVirtualNicBody)
	if body.Fault_ = n.Network.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	device := ""
	fault := n.Network.change(ctx, func(net *State) vcsim.Fault {
		if f := n.Network.refuseVnic(net, req.Portgroup, req.Nic); f != nil {
			return f
		}
		device = net.freeDevice()
		nic := types.HostVirtualNic{Device: device, Key: vnicKey + device, Portgroup: req.Portgroup, Spec: req.Nic}
		nic.Spec.Portgroup = req.Portgroup
		nic.Spec.Mac = cmp.Or(nic.Spec.Mac, n.Network.mac(device))
		nic.Spec.NetStackInstanceKey = cmp.Or(nic.Spec.NetStackInstanceKey, "defaultTcpipStack")
		if nic.Spec.Mtu == 0 {
			nic.Spec.Mtu = 1500
		}
		net.Info.Vnic = append(slices.Clone(net.Info.Vnic), nic)
		return nil
	})
	if fault != nil {
		body.Fault_ = vcsim.SoapFault(fault)
		return body
	}
	body.Res = &types.AddVirtualNicResponse{Returnval: device}
	return body
}

// refuseVnic returns the fault of a vmkernel adapter that cannot be added, or nil if it can. The caller holds the
// lock.
func (s *System) refuseVnic(net *State, portgroup string, spec types.HostVirtualNicSpec) vcsim.Fault {
	if f := refuseMTU(spec.Mtu); f != nil {
		return f
	}
	port := spec.DistributedVirtualPort
	switch {
	case port != nil:
		joined := slices.ContainsFunc(net.Info.ProxySwitch, func(s types.HostProxySwitch) bool {
			return s.DvsUuid == port.SwitchUuid
		})
		if !joined {
			return new(types.NotFound)
		}
	case portgroup == "":
		return &types.InvalidArgument{InvalidProperty: "portgroup"}
	case !slices.ContainsFunc(net.Info.Portgroup, func(g types.HostPortGroup) bool {
		return g.Spec.Name == portgroup
	}):
		return new(types.NotFound)
	}
	return nil
}

// refuseMTU refuses an MTU outside 1280 to 9000.
// VMware: vSphere documentation, vmkernel adapters: MTU up to 9000.
// Ours: the lower limit (unproven).
func refuseMTU(mtu int32) vcsim.Fault {
	if mtu != 0 && (mtu < LeastMTU || mtu > mostMTU) {
		return &types.InvalidArgument{InvalidProperty: "nic.mtu"}
	}
	return nil
}

func (n *State) freeDevice() string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("vmk%d", i); n.vnic(name) < 0 {
			return name
		}
	}
}

// UpdateVirtualNic changes the settings in the specification and keeps the rest.
// VMware: pyVmomi 9.1, faults of UpdateVirtualNic: NotFound.
func (n *SystemMethods) UpdateVirtualNic(ctx *simulator.Context, req *types.UpdateVirtualNic) soap.HasFault {
	body := new(methods.UpdateVirtualNicBody)
	if body.Fault_ = n.Network.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	fault := n.Network.change(ctx, func(net *State) vcsim.Fault {
		i := net.vnic(req.Device)
		if i < 0 {
			return new(types.NotFound)
		}
		if f := refuseMTU(req.Nic.Mtu); f != nil {
			return f
		}
		net.Info.Vnic = slices.Clone(net.Info.Vnic)
		merge(&net.Info.Vnic[i], req.Nic)
		return nil
	})
	if fault != nil {
		body.Fault_ = vcsim.SoapFault(fault)
		return body
	}
	body.Res = new(types.UpdateVirtualNicResponse)
	return body
}

func merge(nic *types.HostVirtualNic, spec types.HostVirtualNicSpec) {
	if spec.Mtu != 0 {
		nic.Spec.Mtu = spec.Mtu
	}
	if spec.Ip != nil {
		nic.Spec.Ip = spec.Ip
	}
	if spec.TsoEnabled != nil {
		nic.Spec.TsoEnabled = spec.TsoEnabled
	}
	if spec.Portgroup != "" {
		nic.Portgroup, nic.Spec.Portgroup, nic.Spec.DistributedVirtualPort = spec.Portgroup, spec.Portgroup, nil
	}
	if spec.DistributedVirtualPort != nil {
		nic.Portgroup, nic.Spec.Portgroup, nic.Spec.DistributedVirtualPort = "", "", spec.DistributedVirtualPort
	}
}

// RemoveVirtualNic removes a vmkernel adapter and its services.
// VMware: pyVmomi 9.1, faults of RemoveVirtualNic: NotFound.
func (n *SystemMethods) RemoveVirtualNic(ctx *simulator.Context, req *types.RemoveVirtualNic) soap.HasFault {
	body := new(methods.RemoveVirtualNicBody)
	if body.Fault_ = n.Network.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	fault := n.Network.change(ctx, func(net *State) vcsim.Fault {
		i := net.vnic(req.Device)
		if i < 0 {
			return new(types.NotFound)
		}
		net.Info.Vnic = slices.Delete(slices.Clone(net.Info.Vnic), i, i+1)
		services := map[string][]string{}
		for kind, devices := range net.services {
			services[kind] = slices.DeleteFunc(slices.Clone(devices), func(d string) bool { return d == req.Device })
		}
		net.services = services
		return nil
	})
	if fault != nil {
		body.Fault_ = vcsim.SoapFault(fault)
		return body
	}
	body.Res = new(types.RemoveVirtualNicResponse)
	return body
}

// VnicManagerMethods answers the calls that set the services of vmkernel adapters.
type VnicManagerMethods struct {
	*simulator.HostVirtualNicManager
	Network *System
}

// SelectVnicForNicType adds a service to a vmkernel adapter.
// VMware: pyVmomi 9.1, faults of SelectVnicForNicType: InvalidArgument.
func (v *VnicManagerMethods) SelectVnicForNicType(
	ctx *simulator.Context, req *types.SelectVnicForNicType,
) soap.HasFault {
	body := new(methods.SelectVnicForNicTypeBody)
	if body.Fault_ = v.Network.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := v.set(ctx, req.NicType, req.Device, true); f != nil {
		body.Fault_ = vcsim.SoapFault(f)
		return body
	}
	body.Res = new(types.SelectVnicForNicTypeResponse)
	return body
}

// DeselectVnicForNicType removes a service from a vmkernel adapter.
// VMware: pyVmomi 9.1, faults of DeselectVnicForNicType: InvalidArgument.
func (v *VnicManagerMethods) DeselectVnicForNicType(
	ctx *simulator.Context, req *types.DeselectVnicForNicType,
) soap.HasFault {
	body := new(methods.DeselectVnicForNicTypeBody)
	if body.Fault_ = v.Network.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := v.set(ctx, req.NicType, req.Device, false); f != nil {
		body.Fault_ = vcsim.SoapFault(f)
		return body
	}
	body.Res = new(types.DeselectVnicForNicTypeResponse)
	return body
}

func (v *VnicManagerMethods) set(ctx *simulator.Context, kind, device string, on bool) vcsim.Fault {
	return v.Network.change(ctx, func(net *State) vcsim.Fault {
		if !slices.Contains(nicTypes, kind) {
			return &types.InvalidArgument{InvalidProperty: "nicType"}
		}
		if net.vnic(device) < 0 {
			return &types.InvalidArgument{InvalidProperty: "device"}
		}
		services := map[string][]string{}
		for k, devices := range net.services {
			services[k] = devices
		}
		devices := slices.DeleteFunc(slices.Clone(services[kind]), func(d string) bool { return d == device })
		if on {
			devices = append(devices, device)
		}
		services[kind] = devices
		net.services = services
		return nil
	})
}
