package vm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// metadata is the part of cloud-init's metadata that a simulated guest applies.
type metadata struct {
	Hostname string `json:"local-hostname"`
	Network  struct {
		Ethernets map[string]struct {
			Match     struct{ MACAddress string } `json:"match"`
			Addresses []string                    `json:"addresses"`
		} `json:"ethernets"`
	} `json:"network"`
}

// boot reports name and address over VMware Tools, as a guest does that cloud-init configured. A virtual machine that
// a listener powers on has a real guest, which reports them.
// VMware: cloud-init, data source VMware: guestinfo.metadata in base64 with local-hostname and network.
func (m *Methods) boot(ctx *simulator.Context) {
	if listener, _, _ := m.machines.External.State(); listener != "" {
		return
	}
	var text string
	ctx.WithLock(m.VirtualMachine, func() {
		for _, o := range m.Config.ExtraConfig {
			if v := o.GetOptionValue(); v.Key == "guestinfo.metadata" {
				text, _ = v.Value.(string)
			}
		}
	})
	plain, err := base64.StdEncoding.DecodeString(text)
	var data metadata
	if text == "" || err != nil || json.Unmarshal(plain, &data) != nil {
		return
	}
	m.setGuest(ctx, data.Hostname, m.address(ctx, data))
}

// address is that of the first network card: the configured one, or one of the lab's DHCP.
// Ours: addresses of DHCP are 10.99.0.0/16, derived from the reference of the virtual machine.
func (m *Methods) address(ctx *simulator.Context, data metadata) string {
	var mac string
	ctx.WithLock(m.VirtualMachine, func() {
		for _, d := range m.Config.Hardware.Device {
			if card, ok := d.(types.BaseVirtualEthernetCard); ok && mac == "" {
				mac = card.GetVirtualEthernetCard().MacAddress
			}
		}
	})
	for _, card := range data.Network.Ethernets {
		if strings.EqualFold(card.Match.MACAddress, mac) && len(card.Addresses) > 0 {
			address, _, _ := strings.Cut(card.Addresses[0], "/")
			return address
		}
	}
	h := fnv.New32()
	h.Write([]byte(m.Self.Value))
	return fmt.Sprintf("10.99.%d.%d", h.Sum32()>>8&0xff, h.Sum32()%254+1)
}

// SetGuest sets what VMware Tools report; an empty address means that they do not run.
// VMware: vSphere API reference, GuestInfo: toolsRunningStatus, ipAddress, net.
func (s *Machines) SetGuest(name, hostname, address string) bool {
	m, ok := s.Named(name)
	if ok {
		m.setGuest(s.sim.Context(), hostname, address)
	}
	return ok
}

func (m *Methods) setGuest(ctx *simulator.Context, hostname, address string) {
	running, state, tools := types.VirtualMachineToolsRunningStatusGuestToolsRunning, "running",
		types.VirtualMachineToolsStatusToolsOk
	if address == "" {
		running, state, tools = types.VirtualMachineToolsRunningStatusGuestToolsNotRunning, "notRunning",
			types.VirtualMachineToolsStatusToolsNotRunning
	}
	nets := []types.GuestNicInfo{}
	if address != "" {
		nets = append(nets, types.GuestNicInfo{Network: "VM Network", IpAddress: []string{address}, Connected: true,
			DeviceConfigId: 4000})
	}
	m.sim.Update(ctx, m.VirtualMachine,
		vcsim.Change("guest.ipAddress", address), vcsim.Change("guest.hostName", hostname),
		vcsim.Change("guest.toolsRunningStatus", string(running)),
		vcsim.Change("guest.guestState", state), vcsim.Change("guest.toolsStatus", tools),
		vcsim.Change("guest.net", nets),
		vcsim.Change("summary.guest.ipAddress", address), vcsim.Change("summary.guest.hostName", hostname),
		vcsim.Change("summary.guest.toolsRunningStatus", string(running)),
		vcsim.Change("summary.guest.toolsStatus", tools))
}
