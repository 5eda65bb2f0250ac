package world

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// network is a host's network: what config.network, networkInfo and the virtual NIC manager are made of.
type network struct {
	info     types.HostNetworkInfo // its slices are replaced, never changed in place: others may be reading them
	services map[string][]string   // vmkernel devices by service, such as vmotion
}

const (
	pnicKey    = "key-vim.host.PhysicalNic-"
	vswitchKey = "key-vim.host.VirtualSwitch-"
	groupKey   = "key-vim.host.PortGroup-"
	vnicKey    = "key-vim.host.VirtualNic-"
	rdmaKey    = "key-vim.host.RdmaDevice-"
	uplinkName = "uplink"
)

// nicTypes are the services a vmkernel adapter may carry.
var nicTypes = []string{
	"faultToleranceLogging", "management", "nvmeRdma", "nvmeTcp", "ptp", "vSphereBackupNFC", "vSphereProvisioning", "vSphereReplication",
	"vSphereReplicationNFC", "vmotion", "vsan", "vsanExternal", "vsanWitness",
}

func (h *Host) installNetwork(ctx *simulator.Context) {
	h.net = network{services: map[string][]string{}}
	stock := h.entity.Config.Network
	h.net.info = types.HostNetworkInfo{DnsConfig: stock.DnsConfig, IpRouteConfig: stock.IpRouteConfig, NetStackInstance: stock.NetStackInstance}
	for _, nic := range h.kit.NICs {
		h.net.info.Pnic = append(h.net.info.Pnic, h.pnic(nic))
	}
	h.net.info.Vswitch, h.net.info.Portgroup = h.standardSwitch()
	for _, v := range h.spec.Vmkernel {
		if v.Switch == "" {
			h.placeVmkernel(v, nil)
		}
	}
	h.showNetwork(ctx)
}

// mac is an address that stays the same from run to run.
func (h *Host) mac(device string) string {
	sum := sha256.Sum256([]byte(h.spec.Name + "/" + device))
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", sum[0]&0x3f, sum[1], sum[2])
}

func (h *Host) pnic(nic datacentre.NIC) types.PhysicalNic {
	speed := types.PhysicalNicLinkInfo{SpeedMb: nic.SpeedMb, Duplex: true}
	return types.PhysicalNic{
		Key: pnicKey + nic.Device, Device: nic.Device, Pci: nic.PCI, Driver: nic.Driver, DriverVersion: "4.23.6.2", FirmwareVersion: nic.Firmware,
		LinkSpeed: &speed, ValidLinkSpecification: []types.PhysicalNicLinkInfo{speed},
		Spec: types.PhysicalNicSpec{Ip: &types.HostIpConfig{}, EnableEnhancedNetworkingStack: types.NewBool(false)},
		Mac:  h.mac(nic.Device), AutoNegotiateSupported: types.NewBool(true), ResourcePoolSchedulerAllowed: types.NewBool(true),
		VmDirectPathGen2Supported: types.NewBool(false), RdmaDevice: nic.RDMA,
	}
}

// rdmaDevices are the host's RDMA devices with the RoCE MTU of now. The caller holds the host's lock.
func (h *Host) rdmaDevices() []types.HostRdmaDevice {
	var out []types.HostRdmaDevice
	for _, nic := range h.kit.NICs {
		if nic.RDMA == "" || strings.HasPrefix(h.world.desc.APIVersion, "6.") { // the API shows them since 7.0
			continue
		}
		out = append(out, types.HostRdmaDevice{
			Key: rdmaKey + nic.RDMA, Device: nic.RDMA, Driver: "nmlx5_rdma", Description: nic.Name,
			Backing:        &types.HostRdmaDevicePnicBacking{PairedUplink: pnicKey + nic.Device},
			ConnectionInfo: types.HostRdmaDeviceConnectionInfo{State: "active", Mtu: h.net.roceMTU(nic.Device), SpeedInMbps: nic.SpeedMb},
			Capability:     types.HostRdmaDeviceCapability{RoceV1Capable: true, RoceV2Capable: true},
		})
	}
	return out
}

// standardSwitch is vSwitch0 with the first NIC and the two port groups every ESXi starts with.
func (h *Host) standardSwitch() ([]types.HostVirtualSwitch, []types.HostPortGroup) {
	const name = "vSwitch0"
	sw := types.HostVirtualSwitch{Name: name, Key: vswitchKey + name, NumPorts: 7680, NumPortsAvailable: 7670, Mtu: 1500,
		Spec: types.HostVirtualSwitchSpec{NumPorts: 128, Mtu: 1500}}
	if len(h.kit.NICs) > 0 {
		first := h.kit.NICs[0].Device
		sw.Pnic = []string{pnicKey + first}
		sw.Spec.Bridge = &types.HostVirtualSwitchBondBridge{NicDevice: []string{first}}
	}
	var groups []types.HostPortGroup
	for _, g := range []string{"VM Network", "Management Network"} {
		sw.Portgroup = append(sw.Portgroup, groupKey+g)
		groups = append(groups, types.HostPortGroup{Key: groupKey + g, Vswitch: sw.Key, Spec: types.HostPortGroupSpec{Name: g, VswitchName: name}})
	}
	return []types.HostVirtualSwitch{sw}, groups
}

// placeVmkernel adds an adapter of the description; port is nil on a standard switch.
func (h *Host) placeVmkernel(v datacentre.Vmkernel, port *types.DistributedVirtualSwitchPortConnection) {
	nic := types.HostVirtualNic{
		Device: v.Device, Key: vnicKey + v.Device,
		Spec: types.HostVirtualNicSpec{
			Ip:  &types.HostIpConfig{Dhcp: v.Address == "", IpAddress: v.Address, SubnetMask: v.Netmask},
			Mac: h.mac(v.Device), Mtu: v.MTU, TsoEnabled: types.NewBool(true), DistributedVirtualPort: port,
			NetStackInstanceKey: "defaultTcpipStack",
		},
	}
	if v.NetStack != "" {
		nic.Spec.NetStackInstanceKey = v.NetStack
	}
	if port == nil {
		nic.Portgroup, nic.Spec.Portgroup = v.Portgroup, v.Portgroup
	}
	h.net.info.Vnic = append(slices.Clone(h.net.info.Vnic), nic)
	for _, s := range v.Services {
		h.net.services[s] = append(slices.Clone(h.net.services[s]), v.Device)
	}
}

// netConfig is what the virtual NIC manager says of each service.
func (n *network) netConfig() []types.VirtualNicManagerNetConfig {
	var out []types.VirtualNicManagerNetConfig
	for _, kind := range nicTypes {
		c := types.VirtualNicManagerNetConfig{NicType: kind, MultiSelectAllowed: true}
		for _, v := range n.info.Vnic {
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

// changeNetwork changes the network by f, under the host's own lock, and shows it everywhere unless f fails.
func (h *Host) changeNetwork(ctx *simulator.Context, f func(*network) types.BaseMethodFault) types.BaseMethodFault {
	h.mu.Lock()
	fault := f(&h.net)
	h.mu.Unlock()
	if fault == nil {
		h.showNetwork(ctx)
	}
	return fault
}

// showNetwork puts the network where clients look for it: the host, the network system, the virtual NIC manager.
func (h *Host) showNetwork(ctx *simulator.Context) {
	h.mu.Lock()
	h.net.info.RdmaDevice = h.rdmaDevices()
	shown, own := h.net.info, h.net.info
	configs := h.net.netConfig()
	h.mu.Unlock()
	// vcsim's own methods change these in place, so the network system gets its own
	own.Vswitch, own.Portgroup = slices.Clone(shown.Vswitch), slices.Clone(shown.Portgroup)
	for i := range own.Vswitch {
		own.Vswitch[i].Portgroup = slices.Clone(own.Vswitch[i].Portgroup)
	}
	nics := types.HostVirtualNicManagerInfo{NetConfig: configs}
	h.push(ctx, change("config.network", shown), change("config.virtualNicManagerInfo", nics))
	reg := h.world.reg
	h.world.update(ctx, reg.Get(*h.entity.ConfigManager.NetworkSystem), change("networkInfo", own))
	h.world.update(ctx, reg.Get(*h.entity.ConfigManager.VirtualNicManager), change("info", nics))
}

// networkNow is a copy of the network.
func (h *Host) networkNow() network {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.net
}

func (n *network) vnic(device string) int {
	return slices.IndexFunc(n.info.Vnic, func(v types.HostVirtualNic) bool { return v.Device == device })
}
