package world

import (
	"fmt"
	"strconv"
	"strings"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

func (s *Network) nicCommands() map[string]command {
	nic := []string{"nicname"}
	return map[string]command{
		"network.nic.list":           {run: s.nicList},
		"network.nic.stats.get":      {params: nic, run: s.nicStats},
		"network.nic.dcb.status.get": {params: nic, run: s.dcbStatus},
	}
}

func (s *Network) nic(a esxcli.Values) (datacentre.NIC, *cliError) {
	for _, n := range s.host.kit.NICs {
		if n.Device == a.Value("nicname") {
			return n, nil
		}
	}
	return datacentre.NIC{}, cliErrorf("Unable to find NIC %s", a.Value("nicname"))
}

func (s *Network) nicList(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	out := rows("NIC")
	net := s.now()
	for _, n := range s.host.kit.NICs {
		out.Values = append(out.Values, record("Name", n.Device, "PCIDevice", n.PCI, "Driver", n.Driver, "AdminStatus", "Up", "LinkStatus", "Up", "Link", "Up",
			"Speed", fmt.Sprint(n.SpeedMb), "Duplex", "Full", "MACAddress", s.mac(n.Device), "MTU", fmt.Sprint(net.uplinkMTU(n.Device)), "Description", n.Name))
	}
	return out, nil
}

func (s *Network) nicStats(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	n, err := s.nic(a)
	if err != nil {
		return nil, err
	}
	c := s.trafficNow().NIC[n.Device]
	v := record("NICName", n.Device, "PacketsReceived", packets(c.RxBytes), "PacketsSent", packets(c.TxBytes), "BytesReceived", fmt.Sprint(c.RxBytes), "BytesSent", fmt.Sprint(c.TxBytes))
	for _, quiet := range strings.Fields("ReceivePacketsDropped TransmitPacketsDropped MulticastPacketsReceived BroadcastPacketsReceived TotalReceiveErrors TotalTransmitErrors") {
		v[quiet] = []string{"0"}
	}
	return rows("NicStats", v), nil
}

// dcbStatus derives PFC from the driver's options in effect: a priority is lossless when both directions are.
func (s *Network) dcbStatus(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	n, err := s.nic(a)
	if err != nil {
		return nil, err
	}
	m, _ := s.modules.module(n.Driver)
	if n.Driver != "nmlx5_core" {
		return nil, cliErrorf("DCB is not supported on NIC %s", n.Device)
	}
	mask := m.activeNumber("pfctx") & m.activeNumber("pfcrx")
	var bits []string
	for priority := range 8 {
		bits = append(bits, strconv.Itoa(int(mask>>priority&1)))
	}
	mode := "3 - IEEE Mode"
	return rows("NicDcb", record("Nic", n.Device, "Mode", mode, "Enabled", "true", "Capabilities", "Priority Group: true Priority Flow Control: true PG Traffic Classes: 8 PFC Traffic Classes: 8",
		"PFCEnabled", truth(mask != 0), "PFCConfiguration", strings.Join(bits, " "))), nil
}
