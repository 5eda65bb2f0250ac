package world

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

func init() {
	nic := []string{"nicname"}
	commands["network.nic.list"] = command{run: (*Host).nicList}
	commands["network.nic.stats.get"] = command{params: nic, run: (*Host).nicStats}
	commands["network.nic.dcb.status.get"] = command{params: nic, run: (*Host).dcbStatus}
	commands["system.stats.uptime.get"] = command{run: (*Host).uptime}
	commands["system.maintenanceMode.get"] = command{run: (*Host).maintenanceGet}
	commands["system.settings.advanced.list"] = command{params: []string{"delta", "option", "tree"}, run: (*Host).advancedList}
}

func (h *Host) nic(a esxcli.Values) (datacentre.NIC, *cliError) {
	for _, n := range h.kit.NICs {
		if n.Device == a.Value("nicname") {
			return n, nil
		}
	}
	return datacentre.NIC{}, cliErrorf("Unable to find NIC %s", a.Value("nicname"))
}

func (h *Host) nicList(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	out := rows("NIC")
	net := h.networkNow()
	for _, n := range h.kit.NICs {
		out.Values = append(out.Values, record("Name", n.Device, "PCIDevice", n.PCI, "Driver", n.Driver, "AdminStatus", "Up", "LinkStatus", "Up", "Link", "Up",
			"Speed", fmt.Sprint(n.SpeedMb), "Duplex", "Full", "MACAddress", h.mac(n.Device), "MTU", fmt.Sprint(net.uplinkMTU(n.Device)), "Description", n.Name))
	}
	return out, nil
}

func (h *Host) nicStats(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	n, err := h.nic(a)
	if err != nil {
		return nil, err
	}
	c := h.trafficNow().NIC[n.Device]
	v := record("NICName", n.Device, "PacketsReceived", packets(c.RxBytes), "PacketsSent", packets(c.TxBytes), "BytesReceived", fmt.Sprint(c.RxBytes), "BytesSent", fmt.Sprint(c.TxBytes))
	for _, quiet := range strings.Fields("ReceivePacketsDropped TransmitPacketsDropped MulticastPacketsReceived BroadcastPacketsReceived TotalReceiveErrors TotalTransmitErrors") {
		v[quiet] = []string{"0"}
	}
	return rows("NicStats", v), nil
}

// dcbStatus derives PFC from the driver's options in effect: a priority is lossless when both directions are.
func (h *Host) dcbStatus(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	n, err := h.nic(a)
	if err != nil {
		return nil, err
	}
	m, _ := h.moduleCopy(n.Driver)
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

// activeNumber is the value of a driver option in effect; 0 when it is not set or no number.
func (m *module) activeNumber(option string) uint64 {
	for _, o := range strings.Fields(m.active) {
		if value, ok := strings.CutPrefix(o, option+"="); ok {
			n, err := strconv.ParseUint(value, 0, 8)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// uptime is in microseconds.
func (h *Host) uptime(ctx *simulator.Context, _ esxcli.Values) (*esxcli.Response, *cliError) {
	return &esxcli.Response{Kind: "long", String: fmt.Sprint(time.Since(*h.runtime(ctx).BootTime).Microseconds())}, nil
}

func (h *Host) maintenanceGet(ctx *simulator.Context, _ esxcli.Values) (*esxcli.Response, *cliError) {
	state := "Disabled"
	if h.runtime(ctx).InMaintenanceMode {
		state = "Enabled"
	}
	return &esxcli.Response{Kind: "string", String: state}, nil
}

func (h *Host) advancedList(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	m := h.world.reg.Get(*h.entity.ConfigManager.AdvancedOption).(*simulator.OptionManager)
	out := rows("SettingsAdvancedOption")
	ctx.WithLock(m, func() {
		for i, d := range m.SupportedOption {
			path := "/" + strings.ReplaceAll(d.Key, ".", "/")
			if wanted := a.Value("option"); wanted != "" && wanted != path {
				continue
			}
			out.Values = append(out.Values, advancedRow(path, d, m.Setting[i].GetOptionValue()))
		}
	})
	if len(out.Values) == 0 {
		return nil, cliErrorf("Unable to find option")
	}
	return out, nil
}
