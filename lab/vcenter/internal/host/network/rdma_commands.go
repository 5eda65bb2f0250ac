package network

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
)

func (s *System) rdmaCommands() map[string]esxcli.Command {
	device := []string{"device"}
	return map[string]esxcli.Command{
		"rdma.device.protocol.list": {Params: device, Run: s.rdmaProtocols},
		"rdma.device.vmknic.list":   {Params: device, Run: s.rdmaVmknics},
		"rdma.device.stats.get":     {Params: device, Run: s.rdmaStats},
	}
}

// rdmaPorts returns the RDMA devices of the host, or the named one.
func (s *System) rdmaPorts(a esxcli.Values) ([]datacentre.NIC, *esxcli.Error) {
	var out []datacentre.NIC
	for _, n := range s.host.Hardware.NICs {
		if name := a.Value("device"); n.RDMA != "" && (name == "" || name == n.RDMA) {
			out = append(out, n)
		}
	}
	if len(out) == 0 && a.Value("device") != "" {
		return nil, esxcli.Errorf("Unable to find RDMA device %s", a.Value("device"))
	}
	return out, nil
}

// roceMTU returns the largest RoCE MTU below the MTU of the NIC's switch: 4096, 2048, 1024 or 512.
// VMware: NVIDIA documentation, RoCE MTU: the active MTU follows the Ethernet MTU.
func (n *State) roceMTU(device string) int32 {
	ethernet := n.uplinkMTU(device)
	for _, mtu := range []int32{4096, 2048, 1024} {
		if ethernet > mtu {
			return mtu
		}
	}
	return 512
}

// uplinkMTU returns the MTU of the switch that has the NIC as an uplink.
func (n *State) uplinkMTU(device string) int32 {
	for _, s := range n.Info.ProxySwitch {
		if slices.Contains(s.Pnic, pnicKey+device) && s.Mtu != 0 {
			return s.Mtu
		}
	}
	for _, s := range n.Info.Vswitch {
		if slices.Contains(s.Pnic, pnicKey+device) && s.Mtu != 0 {
			return s.Mtu
		}
	}
	return 1500
}

// rdmaProtocols returns RoCE v1 and v2 for every RDMA device, without v1 where the release no longer has it.
// VMware: the command is in public transcripts.
// Ours: the names of its fields (unproven).
func (s *System) rdmaProtocols(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	ports, err := s.rdmaPorts(a)
	out := esxcli.Rows("RDMADeviceProtocol")
	for _, n := range ports {
		out.Values = append(out.Values,
			esxcli.Record("Device", n.RDMA, "RoCEv1", strconv.FormatBool(s.roceV1()), "RoCEv2", "true",
				"iWARP", "false"))
	}
	return out, err
}

// rdmaVmknics returns the vmkernel adapters on switches whose uplinks include the NICs of RDMA devices.
// VMware: public transcripts of esxcli rdma device vmknic list: Device, Vmknic, NetStack.
func (s *System) rdmaVmknics(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	ports, err := s.rdmaPorts(a)
	out := esxcli.Rows("RDMADeviceVmknic")
	net := s.Current()
	for _, n := range ports {
		for _, v := range net.Info.Vnic {
			if net.onUplink(v, n.Device) {
				out.Values = append(out.Values,
					esxcli.Record("Device", n.RDMA, "Vmknic", v.Device, "NetStack", v.Spec.NetStackInstanceKey))
			}
		}
	}
	return out, err
}

// onUplink reports whether a vmkernel adapter is on a switch with this uplink.
func (n *State) onUplink(v types.HostVirtualNic, uplink string) bool {
	if port := v.Spec.DistributedVirtualPort; port != nil {
		return slices.ContainsFunc(n.Info.ProxySwitch, func(s types.HostProxySwitch) bool {
			return s.DvsUuid == port.SwitchUuid && slices.Contains(s.Pnic, pnicKey+uplink)
		})
	}
	for _, g := range n.Info.Portgroup {
		for _, s := range n.Info.Vswitch {
			if g.Spec.Name == v.Portgroup && s.Name == g.Spec.VswitchName && slices.Contains(s.Pnic, pnicKey+uplink) {
				return true
			}
		}
	}
	return false
}

// rdmaStats returns the packets and bytes of an RDMA device.
// Ours: field names in CamelCase; no recording was found (unproven).
func (s *System) rdmaStats(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	if a.Value("device") == "" {
		return nil, esxcli.Errorf("Error: Missing required parameter -d|--device")
	}
	ports, err := s.rdmaPorts(a)
	if err != nil {
		return nil, err
	}
	c := s.currentTraffic().RDMA[ports[0].RDMA]
	v := esxcli.Record("PacketsReceived", packets(c.RxBytes), "PacketsSent", packets(c.TxBytes),
		"BytesReceived", fmt.Sprint(c.RxBytes), "BytesSent", fmt.Sprint(c.TxBytes),
		"UnicastPacketsReceived", packets(c.RxBytes), "UnicastPacketsSent", packets(c.TxBytes),
		"UnicastBytesReceived", fmt.Sprint(c.RxBytes), "UnicastBytesSent", fmt.Sprint(c.TxBytes))
	for _, zero := range []string{"ErrorPacketsReceived", "ErrorPacketsSent", "ErrorLengthPacketsReceived",
		"MulticastPacketsReceived", "MulticastPacketsSent", "MulticastBytesReceived", "MulticastBytesSent",
		"QueuePairsAllocated"} {
		v[zero] = []string{"0"}
	}
	return esxcli.Rows("RDMADeviceStats", v), nil
}

func packets(bytes int64) string { return fmt.Sprint((bytes + packetBytes - 1) / packetBytes) }
