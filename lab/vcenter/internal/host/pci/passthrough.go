// Package pci simulates the PCI devices of a host: DirectPath, SR-IOV, and reservations of virtual machines.
//
// vcsim: nothing.
package pci

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/host/modules"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// passthru is the DirectPath state of a PCI device: an enabled device becomes active at the next boot.
type passthru struct {
	enabled, active bool
	capable         bool
	label           string
}

// passthruSystem is a host's HostPciPassthruSystem.
type passthruSystem struct {
	mo.HostPciPassthruSystem
	pci *System
}

// System is the PCI devices of a host, their DirectPath state and their reservations.
type System struct {
	host    *host.Host
	modules *modules.System
	devices []types.HostPciDevice // never changes

	mu       sync.Mutex // guards what follows; never held while a vcsim lock is taken
	passthru map[string]passthru
	reserved map[string]vcsim.Ref // the virtual machines with a reservation, by PCI address
	dvx      []dvxUse
}

// New lists the devices of the host; devices with DirectPath in the description are active.
func New(ctx *simulator.Context, h *host.Host, modules *modules.System) *System {
	s := &System{host: h, modules: modules, passthru: map[string]passthru{}, reserved: map[string]vcsim.Ref{}}
	for _, g := range h.Hardware.GPUs {
		on := slices.Contains(h.Spec.Passthrough, "all") || slices.Contains(h.Spec.Passthrough, g.PCI)
		s.passthru[g.PCI] = passthru{enabled: on, active: on, capable: true}
	}
	for _, n := range h.Hardware.NICs {
		on := slices.Contains(h.Spec.Passthrough, n.PCI)
		s.passthru[n.PCI] = passthru{enabled: on, active: on, capable: n.RDMA != ""}
	}
	m := &passthruSystem{pci: s}
	m.Self = h.ManagerRef("HostPciPassthruSystem", "pciPassthruSystem")
	h.Entity.ConfigManager.PciPassthruSystem = h.Manager(ctx, m)
	h.AddRebootReason(s.needsReboot)
	s.listDevices()
	s.Show(ctx)
	return s
}

// needsReboot reports whether the next boot enables or disables a device.
func (s *System) needsReboot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.passthru {
		if p.enabled != p.active {
			return true
		}
	}
	return false
}

// Active reports whether a device is in DirectPath now.
func (s *System) Active(pci string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passthru[pci].active
}

// Boot activates the enabled devices.
func (s *System) Boot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.passthru)
	for pci, p := range next {
		p.active = p.enabled
		next[pci] = p
	}
	s.passthru = next
}

// GPUInPassthrough returns a GPU that is in DirectPath now or after the next boot, or "" without one.
func (s *System) GPUInPassthrough() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.host.Hardware.GPUs {
		if p := s.passthru[g.PCI]; p.enabled || p.active {
			return g.PCI
		}
	}
	return ""
}

// passthruInfo returns the DirectPath and SR-IOV state of the devices. The caller holds the lock.
// VMware: vSphere API reference, HostPciPassthruInfo, HostSriovInfo.
func (s *System) passthruInfo() []types.BaseHostPciPassthruInfo {
	var out []types.BaseHostPciPassthruInfo
	for _, pci := range slices.Sorted(maps.Keys(s.passthru)) {
		p := s.passthru[pci]
		info := types.HostPciPassthruInfo{Id: pci, DependentDevice: pci, PassthruEnabled: p.enabled,
			PassthruCapable: p.capable, PassthruActive: p.active, HardwareLabel: p.label}
		if module, ok := s.sriovModule(pci); ok {
			active, wanted := functions(module.Active), functions(module.Configured)
			out = append(out, &types.HostSriovInfo{HostPciPassthruInfo: info, SriovCapable: true,
				SriovEnabled: wanted > 0, SriovActive: active > 0,
				NumVirtualFunction: active, NumVirtualFunctionRequested: wanted, MaxVirtualFunctionSupported: 128})
			continue
		}
		out = append(out, &info)
	}
	return out
}

// sriovModule returns the driver of a NIC that supports virtual functions.
func (s *System) sriovModule(pci string) (modules.Module, bool) {
	for _, n := range s.host.Hardware.NICs {
		if n.PCI == pci && n.RDMA != "" {
			return s.modules.Module(n.Driver)
		}
	}
	return modules.Module{}, false
}

// functions returns the number of virtual functions of the first port in the options of a driver.
// VMware: NVIDIA ConnectX driver for ESXi user manual, max_vfs: a comma-separated list, one number for each port.
func functions(options string) int32 {
	for _, o := range strings.Fields(options) {
		if value, ok := strings.CutPrefix(o, "max_vfs="); ok {
			first, _, _ := strings.Cut(value, ",")
			n, err := strconv.ParseInt(first, 0, 32)
			if err == nil {
				return int32(n)
			}
		}
	}
	return 0
}

// Show shows the DirectPath state on the host and on its HostPciPassthruSystem.
func (s *System) Show(ctx *simulator.Context) {
	s.mu.Lock()
	info := s.passthruInfo()
	s.mu.Unlock()
	s.host.Sim.Update(ctx, s.host.Sim.Registry.Get(*s.host.Entity.ConfigManager.PciPassthruSystem),
		vcsim.Change("pciPassthruInfo", info))
	s.host.Push(ctx, vcsim.Change("config.pciPassthruInfo", info))
}

// UpdatePassthruConfig enables and disables DirectPath for devices at the next boot.
// VMware: vSphere API reference, HostPciPassthruInfo: passthruEnabled without passthruActive needs a reboot.
// Ours: InvalidArgument for a device that is unknown or not capable; the declared fault is HostConfigFault
// (unproven).
func (s *passthruSystem) UpdatePassthruConfig(ctx *simulator.Context, req *types.UpdatePassthruConfig) soap.HasFault {
	body := new(methods.UpdatePassthruConfigBody)
	if body.Fault_ = s.pci.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := s.pci.enable(req.Config); f != nil {
		body.Fault_ = vcsim.SoapFault(f)
		return body
	}
	s.pci.Show(ctx)
	s.pci.host.ShowReboot(ctx)
	body.Res = new(types.UpdatePassthruConfigResponse)
	return body
}

// enable stores the devices that are in DirectPath after the next boot.
func (s *System) enable(config []types.BaseHostPciPassthruConfig) vcsim.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.passthru)
	for _, c := range config {
		want := c.GetHostPciPassthruConfig()
		p, ok := next[want.Id]
		if !ok || (want.PassthruEnabled && !p.capable) {
			return &types.InvalidArgument{InvalidProperty: "config.id"}
		}
		p.enabled, p.label = want.PassthruEnabled, cmp.Or(want.HardwareLabel, p.label)
		next[want.Id] = p
	}
	s.passthru = next
	return nil
}

// Refresh returns success; there is nothing to refresh.
// VMware: vSphere API reference, HostPciPassthruSystem.Refresh.
func (s *passthruSystem) Refresh(*types.Refresh) soap.HasFault {
	return &methods.RefreshBody{Res: new(types.RefreshResponse)}
}

// systemID returns the name of the host in passthrough backings.
func (s *System) systemID() string { return fmt.Sprintf("lab-%s", s.host.Self.Value) }

// Adapter returns the virtual device for a PCI device of the host; "gpu" is the first GPU of the host.
func (s *System) Adapter(id string) *types.VirtualPCIPassthrough {
	backing := &types.VirtualPCIPassthroughDeviceBackingInfo{Id: id, SystemId: s.systemID()}
	for _, g := range s.host.Hardware.GPUs {
		if id == "gpu" || id == g.PCI {
			model := s.host.Sim.Description.GPUModels[g.Model]
			backing.Id, backing.VendorId, backing.DeviceId, backing.DeviceName = g.PCI, Signed(model.VendorID),
				fmt.Sprintf("%x", model.DeviceID), model.Name
			break
		}
	}
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: -102, Backing: backing}}
}
