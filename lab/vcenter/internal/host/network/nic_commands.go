package network

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
)

func (s *System) nicCommands() map[string]esxcli.Command {
	nic := []string{"nicname"}
	return map[string]esxcli.Command{
		"network.nic.list":           {Run: s.nicList},
		"network.nic.stats.get":      {Params: nic, Run: s.nicStats},
		"network.nic.dcb.status.get": {Params: nic, Run: s.dcbStatus},
	}
}

func (s *System) nic(a esxcli.Values) (datacentre.NIC, *esxcli.Error) {
	for _, n := range s.host.Hardware.NICs {
		if n.Device == a.Value("nicname") {
			return n, nil
		}
	}
	return datacentre.NIC{}, esxcli.Errorf("Unable to find NIC %s", a.Value("nicname"))
}

// nicList returns the physical NICs with the MTU of their switch.
// Ours: the names of the fields are general knowledge (unproven).
func (s *System) nicList(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	out := esxcli.Rows("NIC")
	net := s.Current()
	for _, n := range s.host.Hardware.NICs {
		out.Values = append(out.Values, esxcli.Record("Name", n.Device, "PCIDevice", n.PCI, "Driver", n.Driver,
			"AdminStatus", "Up", "LinkStatus", "Up", "Link", "Up",
			"Speed", fmt.Sprint(n.SpeedMb), "Duplex", "Full", "MACAddress", s.mac(n.Device),
			"MTU", fmt.Sprint(net.uplinkMTU(n.Device)), "Description", n.Name))
	}
	return out, nil
}

// nicStats returns the packets and bytes of a NIC, without RDMA traffic.
// VMware: public dumps of the esxcli schema: fields are the printed words without blanks. NVIDIA and VMware verify
// RDMA by the fact that it bypasses these counters.
func (s *System) nicStats(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	n, err := s.nic(a)
	if err != nil {
		return nil, err
	}
	c := s.currentTraffic().NIC[n.Device]
	v := esxcli.Record("NICname", n.Device, "Packetsreceived", packets(c.RxBytes), "Packetssent", packets(c.TxBytes),
		"Bytesreceived", fmt.Sprint(c.RxBytes), "Bytessent", fmt.Sprint(c.TxBytes))
	for _, zero := range []string{"Receivepacketsdropped", "Transmitpacketsdropped", "Multicastpacketsreceived",
		"Broadcastpacketsreceived", "Totalreceiveerrors", "ReceiveCRCerrors", "Totaltransmiterrors"} {
		v[zero] = []string{"0"}
	}
	return esxcli.Rows("NicStats", v), nil
}

// dcbStatus derives PFC from the active driver options, or from the priorities that the switch announces to a willing
// card.
// VMware: NVIDIA ConnectX driver for ESXi user manual, esxcli network nic dcb status get: PFC Configuration 0 0 0 1 0
// 0 0 0 for priority 3; vSphere Networking: since ESXi 7, DCBX may set or override PFC.
// Ours: a priority needs both directions; the position of the willing bit in the answer; the error of a driver
// without DCB (unproven).
func (s *System) dcbStatus(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	n, err := s.nic(a)
	if err != nil {
		return nil, err
	}
	if n.Driver != "nmlx5_core" || n.NoDCB {
		return nil, esxcli.Errorf("DCB is not supported on NIC %s", n.Device)
	}
	mask := s.flowControl(n)
	var bits []string
	for priority := range 8 {
		bits = append(bits, strconv.Itoa(int(mask>>priority&1)))
	}
	capabilities := "Priority Group: true Priority Flow Control: true PG Traffic Classes: 8 PFC Traffic Classes: 8"
	answer := esxcli.Record("Nic", n.Device, "Mode", dcbMode(n), "Enabled", "true", "Capabilities", capabilities,
		"PFCEnabled", esxcli.Bool(mask != 0), "PFCConfiguration", strings.Join(bits, " "))
	if n.DCBX != nil {
		answer["WillingBitInETSConfigTLV"] = []string{map[bool]string{true: "1", false: "0"}[n.DCBX.Willing]}
	}
	return esxcli.Rows("NicDcb", answer), nil
}

// flowControl returns the priorities with flow control as bits: a priority needs both directions.
func (s *System) flowControl(n datacentre.NIC) int64 {
	if n.DCBX != nil && n.DCBX.Willing {
		var mask int64
		for _, priority := range n.DCBX.Switch {
			mask |= 1 << priority
		}
		return mask
	}
	m, _ := s.modules.Module(n.Driver)
	return int64(m.ActiveNumber("pfctx") & m.ActiveNumber("pfcrx"))
}

// dcbMode returns the DCBX mode in the format of the command.
// Ours: the numbers before the words, except for IEEE (unproven).
func dcbMode(n datacentre.NIC) string {
	if n.DCBX == nil {
		return "0 - Unknown"
	}
	return map[string]string{"ieee": "3 - IEEE Mode", "cee": "2 - CEE Mode"}[n.DCBX.Mode]
}
