package vm

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	"gopkg.in/yaml.v3"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// metadata is the part of cloud-init's metadata that a simulated guest applies.
type metadata struct {
	Hostname string `yaml:"local-hostname"`
	Network  struct {
		Ethernets map[string]struct {
			Match     struct{ MACAddress string } `yaml:"match"`
			Addresses []string                    `yaml:"addresses"`
		} `yaml:"ethernets"`
	} `yaml:"network"`
}

// boot reports name and address with VMware Tools, like a guest that cloud-init configured. A virtual machine that a
// listener powers on has a real guest, which reports them. Other guests never had VMware Tools.
// VMware: cloud-init, data source VMware: guestinfo.metadata in base64 with local-hostname and network, in
// YAML or JSON. cloud-init 22.4 takes its data source OVF first, and then not guestinfo (ds-identify).
func (m *Methods) boot(ctx *simulator.Context) {
	if listener, _, _ := m.machines.External.State(); listener != "" {
		return
	}
	var text string
	var fromOVF bool
	ctx.WithLock(m.VirtualMachine, func() {
		fromOVF = m.Config.VAppConfig != nil
		for _, o := range m.Config.ExtraConfig {
			if v := o.GetOptionValue(); v.Key == "guestinfo.metadata" {
				text, _ = v.Value.(string)
			}
		}
	})
	plain, err := base64.StdEncoding.DecodeString(text)
	var data metadata
	if text == "" || err != nil || yaml.Unmarshal(plain, &data) != nil {
		m.sim.Update(ctx, m.VirtualMachine, vcsim.Change("guest.toolsVersionStatus2",
			string(types.VirtualMachineToolsVersionStatusGuestToolsNotInstalled)))
		return
	}
	if fromOVF {
		data = metadata{}
	}
	m.setGuest(ctx, data.Hostname, m.address(ctx, data), data)
}

// address returns the address of the first network card: the configured one, or one from the lab's DHCP.
// Ours: DHCP addresses are in 10.99.0.0/16, derived from the reference of the virtual machine.
func (m *Methods) address(ctx *simulator.Context, data metadata) string {
	if cards := m.cards(ctx); len(cards) > 0 {
		if told := data.addresses(primary(cards).GetVirtualEthernetCard().MacAddress); len(told) > 0 {
			return told[0]
		}
	}
	h := fnv.New32()
	h.Write([]byte(m.Self.Value))
	return fmt.Sprintf("10.99.%d.%d", h.Sum32()>>8&0xff, h.Sum32()%254+1)
}

// SetGuest sets the values that VMware Tools report; an empty address means that Tools do not run.
// VMware: vSphere API reference, GuestInfo: toolsRunningStatus, toolsVersionStatus2, ipAddress, net.
func (s *Machines) SetGuest(name, hostname, address string) bool {
	m, ok := s.Named(name)
	if ok {
		m.setGuest(s.sim.Context(), hostname, address, metadata{})
	}
	return ok
}

// primary returns the card whose address Tools report as the guest's address: the first one that is not a PVRDMA
// adapter.
// Ours: a guest's default route is on its management card.
func primary(cards []types.BaseVirtualEthernetCard) types.BaseVirtualEthernetCard {
	for _, c := range cards {
		if _, rdma := c.(*types.VirtualVmxnet3Vrdma); !rdma {
			return c
		}
	}
	return cards[0]
}

// nets returns the network cards of the guest with their device keys. Cards of a guest that does not run have no
// address.
// VMware: vSphere API reference, GuestNicInfo.deviceConfigId is the key of the virtual device.
func (m *Methods) nets(ctx *simulator.Context, address string, data metadata) []types.GuestNicInfo {
	list := []types.GuestNicInfo{}
	for _, c := range m.cards(ctx) {
		card := c.GetVirtualEthernetCard()
		info := types.GuestNicInfo{MacAddress: card.MacAddress, DeviceConfigId: card.Key, Connected: address != ""}
		if b, ok := card.Backing.(*types.VirtualEthernetCardNetworkBackingInfo); ok {
			info.Network = b.DeviceName
		}
		switch {
		case address == "":
		case card.Key == primary(m.cards(ctx)).GetVirtualEthernetCard().Key:
			info.IpAddress = []string{address}
		default:
			info.IpAddress = data.addresses(card.MacAddress)
		}
		list = append(list, info)
	}
	return list
}

// cards returns the network cards of the virtual machine.
func (m *Methods) cards(ctx *simulator.Context) (list []types.BaseVirtualEthernetCard) {
	ctx.WithLock(m.VirtualMachine, func() {
		for _, d := range m.Config.Hardware.Device {
			if card, ok := d.(types.BaseVirtualEthernetCard); ok {
				list = append(list, card)
			}
		}
	})
	return list
}

// addresses returns the static addresses of a card in the metadata.
func (d metadata) addresses(mac string) (list []string) {
	for _, card := range d.Network.Ethernets {
		if strings.EqualFold(card.Match.MACAddress, mac) {
			for _, a := range card.Addresses {
				plain, _, _ := strings.Cut(a, "/")
				list = append(list, plain)
			}
		}
	}
	return list
}

func (m *Methods) setGuest(ctx *simulator.Context, hostname, address string, data metadata) {
	running, state, tools := types.VirtualMachineToolsRunningStatusGuestToolsRunning, "running",
		types.VirtualMachineToolsStatusToolsOk
	if address == "" {
		running, state, tools = types.VirtualMachineToolsRunningStatusGuestToolsNotRunning, "notRunning",
			types.VirtualMachineToolsStatusToolsNotRunning
	}
	m.sim.Update(ctx, m.VirtualMachine,
		vcsim.Change("guest.ipAddress", address), vcsim.Change("guest.hostName", hostname),
		vcsim.Change("guest.toolsRunningStatus", string(running)),
		vcsim.Change("guest.toolsVersionStatus2",
			string(types.VirtualMachineToolsVersionStatusGuestToolsUnmanaged)),
		vcsim.Change("guest.guestStateChangeSupported", address != ""),
		vcsim.Change("guest.guestState", state), vcsim.Change("guest.toolsStatus", tools),
		vcsim.Change("guest.net", m.nets(ctx, address, data)),
		vcsim.Change("summary.guest.ipAddress", address), vcsim.Change("summary.guest.hostName", hostname),
		vcsim.Change("summary.guest.toolsRunningStatus", string(running)),
		vcsim.Change("summary.guest.toolsStatus", tools))
}
