// Package network simulates the network of a host: NICs, RDMA devices, switches, vmkernel adapters, traffic.
//
// vcsim: standard switches and port groups.
package network

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/host/modules"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// State is the network of a host, from which config.network, networkInfo and the HostVirtualNicManager are made.
type State struct {
	Info     types.HostNetworkInfo // its slices are replaced, never modified in place
	services map[string][]string   // vmkernel devices by service, such as vmotion
}

const (
	pnicKey    = "key-vim.host.PhysicalNic-"
	vswitchKey = "key-vim.host.VirtualSwitch-"
	groupKey   = "key-vim.host.PortGroup-"
	vnicKey    = "key-vim.host.VirtualNic-"
	rdmaKey    = "key-vim.host.RdmaDevice-"
	UplinkName = "uplink"
)

// nicTypes are the services of vmkernel adapters.
// VMware: vSphere API reference, HostVirtualNicManagerNicType.
var nicTypes = []string{
	"faultToleranceLogging", "management", "nvmeRdma", "nvmeTcp", "ptp", "vSphereBackupNFC",
	"vSphereProvisioning", "vSphereReplication",
	"vSphereReplicationNFC", "vmotion", "vsan", "vsanExternal", "vsanWitness",
}

// System is the network of a host: its NICs, RDMA devices, switches, vmkernel adapters and traffic.
type System struct {
	host    *host.Host
	modules *modules.System
	fabric  *Fabric

	mu      sync.Mutex // guards what follows; never held while a vcsim lock is taken
	net     State
	traffic Traffic
}

// Fabric is the networks of all hosts.
type Fabric struct {
	sim *vcsim.Sim

	mu       sync.Mutex
	networks []*System
}

// NewFabric returns the fabric of a data centre without hosts.
func NewFabric(sim *vcsim.Sim) *Fabric { return &Fabric{sim: sim} }

// Add creates the network of a host, with the vmkernel adapters of the description on standard switches.
func (f *Fabric) Add(ctx *simulator.Context, h *host.Host, cli *esxcli.Executer, modules *modules.System) *System {
	s := &System{host: h, modules: modules, fabric: f, net: State{services: map[string][]string{}}}
	f.mu.Lock()
	f.networks = append(f.networks, s)
	f.mu.Unlock()
	stock := h.Entity.Config.Network
	s.net.Info = types.HostNetworkInfo{DnsConfig: stock.DnsConfig, IpRouteConfig: stock.IpRouteConfig,
		NetStackInstance: stock.NetStackInstance}
	for _, nic := range h.Hardware.NICs {
		s.net.Info.Pnic = append(s.net.Info.Pnic, s.pnic(nic))
	}
	s.net.Info.Vswitch, s.net.Info.Portgroup = s.standardSwitch()
	for _, v := range h.Spec.Vmkernel {
		if v.Switch == "" {
			s.addVmkernel(v, nil)
		}
	}
	s.addStorageAdapters(ctx)
	cli.Add(s.nicCommands())
	cli.Add(s.rdmaCommands())
	cli.Add(s.pingCommands())
	s.show(ctx)
	return s
}

// All returns the networks of all hosts.
func (f *Fabric) All() []*System {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.networks)
}

// ByRef returns the network of a host by the host's reference, or nil if there is no such host.
func (f *Fabric) ByRef(host vcsim.Ref) *System {
	for _, n := range f.All() {
		if n.host.Self == host {
			return n
		}
	}
	return nil
}

// Remove removes the network of a host that left the inventory.
func (f *Fabric) Remove(gone vcsim.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.networks = slices.DeleteFunc(f.networks, func(n *System) bool { return n.host.Self == gone })
}

// mac returns a MAC address in VMware's range that is the same in every run.
// Ours: reproducible tests.
func (s *System) mac(device string) string {
	sum := sha256.Sum256([]byte(s.host.Spec.Name + "/" + device))
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", sum[0]&0x3f, sum[1], sum[2])
}

// pnic returns a physical NIC in the API's format.
// VMware: vSphere API reference, PhysicalNic.
func (s *System) pnic(nic datacentre.NIC) types.PhysicalNic {
	speed := types.PhysicalNicLinkInfo{SpeedMb: nic.SpeedMb, Duplex: true}
	return types.PhysicalNic{
		Key: pnicKey + nic.Device, Device: nic.Device, Pci: nic.PCI, Driver: nic.Driver, DriverVersion: "4.23.6.2",
		FirmwareVersion: nic.Firmware,
		LinkSpeed:       &speed, ValidLinkSpecification: []types.PhysicalNicLinkInfo{speed},
		Spec: types.PhysicalNicSpec{Ip: &types.HostIpConfig{}, EnableEnhancedNetworkingStack: types.NewBool(false)},
		Mac:  s.mac(nic.Device), AutoNegotiateSupported: types.NewBool(true),
		ResourcePoolSchedulerAllowed: types.NewBool(true),
		VmDirectPathGen2Supported:    types.NewBool(false), RdmaDevice: nic.RDMA,
	}
}

// rdmaDevices returns the RDMA devices of the host with their RoCE MTU. The caller holds the lock.
// VMware: vSphere API reference, HostRdmaDevice: state, MTU, speed, paired uplink, RoCE capabilities.
func (s *System) rdmaDevices() []types.HostRdmaDevice {
	var out []types.HostRdmaDevice
	for _, nic := range s.host.Hardware.NICs {
		if nic.RDMA == "" {
			continue
		}
		out = append(out, types.HostRdmaDevice{
			Key: rdmaKey + nic.RDMA, Device: nic.RDMA, Driver: "nmlx5_rdma", Description: nic.Name,
			Backing: &types.HostRdmaDevicePnicBacking{PairedUplink: pnicKey + nic.Device},
			ConnectionInfo: types.HostRdmaDeviceConnectionInfo{
				State: "active", Mtu: s.net.roceMTU(nic.Device), SpeedInMbps: nic.SpeedMb},
			Capability: types.HostRdmaDeviceCapability{RoceV1Capable: s.roceV1(), RoceV2Capable: true},
		})
	}
	return out
}

// roceV1 reports whether the hosts support RoCE v1.
// VMware: 9.0 removed it, as its product support notes are summarised by github.com/greghavens/vcf-9-x-skills.
// Ours: that a host then reports its cards without it (unproven).
func (s *System) roceV1() bool { return !s.host.Sim.Knows.Since("9.0.0.0") }

// standardSwitch is vSwitch0 with the first NIC, VM Network and Management Network.
// VMware: a new ESXi has this switch and these port groups.
func (s *System) standardSwitch() ([]types.HostVirtualSwitch, []types.HostPortGroup) {
	const name = "vSwitch0"
	sw := types.HostVirtualSwitch{Name: name, Key: vswitchKey + name, NumPorts: 7680, NumPortsAvailable: 7670,
		Mtu:  1500,
		Spec: types.HostVirtualSwitchSpec{NumPorts: 128, Mtu: 1500}}
	if len(s.host.Hardware.NICs) > 0 {
		first := s.host.Hardware.NICs[0].Device
		sw.Pnic = []string{pnicKey + first}
		sw.Spec.Bridge = &types.HostVirtualSwitchBondBridge{NicDevice: []string{first}}
	}
	var groups []types.HostPortGroup
	for _, g := range []string{"VM Network", "Management Network"} {
		sw.Portgroup = append(sw.Portgroup, groupKey+g)
		groups = append(groups, types.HostPortGroup{Key: groupKey + g, Vswitch: sw.Key,
			Spec: types.HostPortGroupSpec{Name: g, VswitchName: name}})
	}
	return []types.HostVirtualSwitch{sw}, groups
}

// addVmkernel adds a vmkernel adapter of the description; port is nil for a standard switch.
func (s *System) addVmkernel(v datacentre.Vmkernel, port *types.DistributedVirtualSwitchPortConnection) {
	nic := types.HostVirtualNic{
		Device: v.Device, Key: vnicKey + v.Device,
		Spec: types.HostVirtualNicSpec{
			Ip:  &types.HostIpConfig{Dhcp: v.Address == "", IpAddress: v.Address, SubnetMask: v.Netmask},
			Mac: s.mac(v.Device), Mtu: v.MTU, TsoEnabled: types.NewBool(true), DistributedVirtualPort: port,
			NetStackInstanceKey: "defaultTcpipStack",
		},
	}
	if v.NetStack != "" {
		nic.Spec.NetStackInstanceKey = v.NetStack
	}
	if port == nil {
		nic.Portgroup, nic.Spec.Portgroup = v.Portgroup, v.Portgroup
	}
	s.net.Info.Vnic = append(slices.Clone(s.net.Info.Vnic), nic)
	for _, kind := range v.Services {
		s.net.services[kind] = append(slices.Clone(s.net.services[kind]), v.Device)
	}
}

// netConfig returns the services with their candidate and selected vmkernel adapters.
func (n *State) netConfig() []types.VirtualNicManagerNetConfig {
	var out []types.VirtualNicManagerNetConfig
	for _, kind := range nicTypes {
		c := types.VirtualNicManagerNetConfig{NicType: kind, MultiSelectAllowed: true}
		for _, v := range n.Info.Vnic {
			v.Key = kind + "." + v.Key
			c.CandidateVnic = append(c.CandidateVnic, v)
			if slices.Contains(n.services[kind], v.Device) {
				c.SelectedVnic = append(c.SelectedVnic, v.Key)
			}
		}
		out = append(out, c)
	}
	return out
}

// change changes the network with f under the lock, and shows it unless f fails.
func (s *System) change(ctx *simulator.Context, f func(*State) vcsim.Fault) vcsim.Fault {
	s.mu.Lock()
	fault := f(&s.net)
	s.mu.Unlock()
	if fault == nil {
		s.show(ctx)
	}
	return fault
}

// show shows the network on the host, its HostNetworkSystem and its HostVirtualNicManager.
func (s *System) show(ctx *simulator.Context) {
	s.mu.Lock()
	s.net.Info.RdmaDevice = s.rdmaDevices()
	shown, own := s.net.Info, s.net.Info
	configs := s.net.netConfig()
	s.mu.Unlock()
	// methods of vcsim change these in place, so the HostNetworkSystem gets copies
	own.Vswitch, own.Portgroup = slices.Clone(shown.Vswitch), slices.Clone(shown.Portgroup)
	for i := range own.Vswitch {
		own.Vswitch[i].Portgroup = slices.Clone(own.Vswitch[i].Portgroup)
	}
	nics := types.HostVirtualNicManagerInfo{NetConfig: configs}
	s.host.Push(ctx, vcsim.Change("config.network", shown), vcsim.Change("config.virtualNicManagerInfo", nics))
	reg := s.host.Sim.Registry
	s.host.Sim.Update(ctx, reg.Get(*s.host.Entity.ConfigManager.NetworkSystem), vcsim.Change("networkInfo", own))
	s.host.Sim.Update(ctx, reg.Get(*s.host.Entity.ConfigManager.VirtualNicManager), vcsim.Change("info", nics))
}

// Current returns a copy of the network.
func (s *System) Current() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.net
}

func (n *State) vnic(device string) int {
	return slices.IndexFunc(n.Info.Vnic, func(v types.HostVirtualNic) bool { return v.Device == device })
}
