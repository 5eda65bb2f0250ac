package pci

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// NVIDIA is the vendor name of PCI devices, GPUs and device groups.
const NVIDIA = "NVIDIA Corporation"

const (
	classDisplay = 0x0302
	classNetwork = 0x0200
)

// listDevices lists GPUs and NICs as PCI devices of the host, with their NUMA nodes.
// VMware: vSphere API reference, HostPciDevice, HostNumaNode.pciId.
func (s *System) listDevices() {
	h, hw := s.host, s.host.Entity.Hardware
	hw.PciDevice = nil
	nodes := make([][]string, max(int(h.Hardware.Sockets), 1))
	add := func(pci string, class int16, vendor, device, subVendor, subDevice uint16, vendorName, name string,
		node int32) {
		bus, slot, function := pciAddress(pci)
		hw.PciDevice = append(hw.PciDevice, types.HostPciDevice{
			Id: pci, ClassId: class, Bus: bus, Slot: slot, Function: function, VendorId: Signed(vendor),
			DeviceId: Signed(device), SubVendorId: Signed(subVendor), SubDeviceId: Signed(subDevice),
			VendorName: vendorName, DeviceName: name})
		if int(node) < len(nodes) {
			nodes[node] = append(nodes[node], pci)
		}
	}
	for _, g := range h.Hardware.GPUs {
		m := h.Sim.Description.GPUModels[g.Model]
		add(g.PCI, classDisplay, m.VendorID, m.DeviceID, m.SubVendorID, m.SubDeviceID, NVIDIA, m.Name, g.NUMA)
	}
	for _, n := range h.Hardware.NICs {
		vendor := map[uint16]string{0x15b3: "Mellanox Technologies", 0x8086: "Intel Corporation"}[n.VendorID]
		add(n.PCI, classNetwork, n.VendorID, n.DeviceID, n.VendorID, n.DeviceID, vendor, n.Name, n.NUMA)
	}
	s.devices = hw.PciDevice
	hw.DvxClasses = s.dvxClasses()
	hw.NumaInfo = numa(h.Hardware, nodes)
}

func numa(kit datacentre.Hardware, nodes [][]string) *types.HostNumaInfo {
	info := &types.HostNumaInfo{Type: "NUMA", NumNodes: int32(len(nodes))}
	size := kit.MemoryGB << 30 / int64(len(nodes))
	for i, pci := range nodes {
		node := types.HostNumaNode{TypeId: byte(i), MemorySize: size, MemoryRangeBegin: int64(i) * size,
			MemoryRangeLength: size, PciId: pci}
		for c := range kit.CoresPerSocket {
			node.CpuID = append(node.CpuID, int16(i)*kit.CoresPerSocket+c)
		}
		info.NumaNode = append(info.NumaNode, node)
	}
	return info
}

// pciAddress splits a PCI address such as 0000:3b:00.0.
func pciAddress(pci string) (bus, slot, function byte) {
	part := func(text string) byte {
		n, err := strconv.ParseUint(text, 16, 8)
		if err != nil {
			panic(
				fmt.Sprintf("PCI address %q: %v", pci, err)) // the description's checks do not cover PCI addresses
		}
		return byte(n)
	}
	fields := strings.FieldsFunc(pci, func(r rune) bool { return r == ':' || r == '.' })
	if len(fields) != 4 {
		panic(fmt.Sprintf("PCI address %q is not like 0000:3b:00.0", pci))
	}
	return part(fields[1]), part(fields[2]), part(fields[3])
}

// Signed returns a 16-bit PCI id in the API's format.
// VMware: vSphere API reference, HostPciDevice.vendorId is a signed 16-bit number.
func Signed(id uint16) int16 { return int16(id) }
