package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

func (s *System) pingCommands() map[string]esxcli.Command {
	params := []string{"count", "debug", "df", "host", "interface", "interval", "ipv4", "ipv6", "netstack", "nexthop",
		"size", "ttl", "wait"}
	return map[string]esxcli.Command{"network.diag.ping": {Params: params, Run: s.ping, XML: true}}
}

// icmpHeaders is the number of bytes that IPv4 and ICMP add to a ping.
const icmpHeaders = 28

// ping succeeds if both adapters are in the same VLAN and subnet and the size fits the MTU in both directions.
// VMware: VMware KB 1003728, vmkping: size without the 28 bytes of IP and ICMP headers; df forbids fragments. The
// field Recieved has the spelling of ESXi.
// Ours: round-trip times are constants.
func (s *System) ping(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	count, size := numberOr(a.Value("count"), 3), numberOr(a.Value("size"), 56)
	own, found := s.Current().adapter(a.Value("interface"))
	if !found {
		return nil, esxcli.Errorf("Unknown interface '%s': Invalid argument", a.Value("interface"))
	}
	received := 0
	if s.reaches(own, a.Value("host"), size, a.Value("df") == "true") {
		received = count
	}
	// "Recieved" is the spelling of ESXi.
	text := fmt.Sprintf(
		`<obj xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" versionId="5.0" `+
			`xsi:type="VimEsxCLInetworkdiagpingPingOutput">`+
			`<Summary><Duplicated>0</Duplicated><HostAddr>%s</HostAddr><PacketLost>%d</PacketLost>`+
			`<Recieved>%d</Recieved>`+
			`<RoundtripAvgMS>112</RoundtripAvgMS><RoundtripMaxMS>130</RoundtripMaxMS>`+
			`<RoundtripMinMS>98</RoundtripMinMS>`+
			`<Transmitted>%d</Transmitted></Summary></obj>`,
		a.Value("host"), 100*(count-received)/max(count, 1), received, count)
	return &esxcli.Response{String: text}, nil
}

func numberOr(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

func (n State) adapter(device string) (types.HostVirtualNic, bool) {
	if i := n.vnic(device); i >= 0 {
		return n.Info.Vnic[i], true
	}
	return types.HostVirtualNic{}, false
}

// reaches reports whether a packet from an adapter reaches an address.
func (s *System) reaches(own types.HostVirtualNic, address string, size int, whole bool) bool {
	for _, peer := range s.fabric.All() {
		net := peer.Current()
		for _, v := range net.Info.Vnic {
			if v.Spec.Ip == nil || v.Spec.Ip.IpAddress != address || !sameSubnet(own, address) ||
				!s.fabric.sameVLAN(own, v) {
				continue
			}
			fits := int32(size)+icmpHeaders <= min(s.pathMTU(own), peer.pathMTU(v))
			return !peer.down() && (fits || !whole)
		}
	}
	return false
}

func (s *System) down() bool { return s.host.Unreachable(s.host.Sim.Context()) != nil }

func sameSubnet(own types.HostVirtualNic, address string) bool {
	if own.Spec.Ip == nil || own.Spec.Ip.SubnetMask == "" {
		return own.Spec.Ip != nil // an adapter of the description without a mask reaches every address
	}
	mask, err := netip.ParseAddr(own.Spec.Ip.SubnetMask)
	mine, err2 := netip.ParseAddr(own.Spec.Ip.IpAddress)
	peer, err3 := netip.ParseAddr(address)
	if err != nil || err2 != nil || err3 != nil {
		return false
	}
	m, a, b := mask.As4(), mine.As4(), peer.As4()
	return !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return a[i]&m[i] != b[i]&m[i] })
}

// sameVLAN reports whether two adapters are in the same VLAN of the same distributed switch.
func (f *Fabric) sameVLAN(a, b types.HostVirtualNic) bool {
	one, other := a.Spec.DistributedVirtualPort, b.Spec.DistributedVirtualPort
	if one == nil || other == nil {
		return one == nil && other == nil
	}
	return one.SwitchUuid == other.SwitchUuid && f.vlanOf(one.PortgroupKey) == f.vlanOf(other.PortgroupKey)
}

func (f *Fabric) vlanOf(key string) int32 {
	found := f.sim.Registry.Get(vcsim.Ref{Type: "DistributedVirtualPortgroup", Value: key})
	group, ok := found.(*simulator.DistributedVirtualPortgroup)
	if !ok {
		return -1
	}
	var vlan int32 = -1
	f.sim.Registry.WithLock(f.sim.Context(), group, func() {
		if s, ok := group.Config.DefaultPortConfig.(*types.VMwareDVSPortSetting); ok {
			if id, ok := s.Vlan.(*types.VmwareDistributedVirtualSwitchVlanIdSpec); ok {
				vlan = id.VlanId
			}
		}
	})
	return vlan
}

// pathMTU returns the smallest MTU from an adapter to the wire, or 0 if its switch has no uplink on this host.
func (s *System) pathMTU(v types.HostVirtualNic) int32 {
	net := s.Current()
	port := v.Spec.DistributedVirtualPort
	if port == nil {
		return v.Spec.Mtu
	}
	for _, proxy := range net.Info.ProxySwitch {
		if proxy.DvsUuid == port.SwitchUuid && len(proxy.Pnic) > 0 {
			return min(v.Spec.Mtu, proxy.Mtu)
		}
	}
	return 0
}
