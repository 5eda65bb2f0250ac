package world

import (
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
)

// passthru is a PCI device's DirectPath state: what is enabled becomes active at the next boot.
type passthru struct {
	enabled, active bool
	capable         bool
	label           string
}

// passthruSystem is a host's HostPciPassthruSystem.
type passthruSystem struct {
	mo.HostPciPassthruSystem
	pci *PCI
}

// PCI is the PCI devices of a host, their DirectPath state and who has reserved them.
type PCI struct {
	host    *Host
	modules *Modules
	devices []types.HostPciDevice // never changes

	mu       sync.Mutex // guards what follows; never held while a vcsim lock is taken
	passthru map[string]passthru
	reserved map[string]ref // devices that running virtual machines have for themselves, by PCI address
}

// newPCI lists the host's devices; what the description gives to DirectPath is active from the start.
func newPCI(ctx *simulator.Context, h *Host, modules *Modules) *PCI {
	s := &PCI{host: h, modules: modules, passthru: map[string]passthru{}, reserved: map[string]ref{}}
	for _, g := range h.kit.GPUs {
		on := slices.Contains(h.spec.Passthrough, "all") || slices.Contains(h.spec.Passthrough, g.PCI)
		s.passthru[g.PCI] = passthru{enabled: on, active: on, capable: true}
	}
	for _, n := range h.kit.NICs {
		on := slices.Contains(h.spec.Passthrough, n.PCI)
		s.passthru[n.PCI] = passthru{enabled: on, active: on, capable: n.RDMA != ""}
	}
	m := &passthruSystem{pci: s}
	m.Self = h.managerRef("HostPciPassthruSystem", "pciPassthruSystem")
	h.entity.ConfigManager.PciPassthruSystem = h.manager(ctx, m)
	h.mayWait(s.waits)
	s.listDevices()
	s.show(ctx)
	return s
}

// waits says whether a device is enabled or disabled from the next boot on.
func (s *PCI) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.passthru {
		if p.enabled != p.active {
			return true
		}
	}
	return false
}

// active says whether a device is in DirectPath now.
func (s *PCI) active(pci string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passthru[pci].active
}

// boot makes what is enabled active.
func (s *PCI) boot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.passthru)
	for pci, p := range next {
		p.active = p.enabled
		next[pci] = p
	}
	s.passthru = next
}

// gpuInPassthrough is a GPU given to DirectPath now or from the next boot on, "" when there is none.
func (s *PCI) gpuInPassthrough() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.host.kit.GPUs {
		if p := s.passthru[g.PCI]; p.enabled || p.active {
			return g.PCI
		}
	}
	return ""
}

// passthruInfo is the state as the API tells it. The caller holds the lock.
func (s *PCI) passthruInfo() []types.BaseHostPciPassthruInfo {
	var out []types.BaseHostPciPassthruInfo
	for _, pci := range slices.Sorted(maps.Keys(s.passthru)) {
		p := s.passthru[pci]
		info := types.HostPciPassthruInfo{Id: pci, DependentDevice: pci, PassthruEnabled: p.enabled, PassthruCapable: p.capable, PassthruActive: p.active, HardwareLabel: p.label}
		if module, ok := s.sriovModule(pci); ok {
			active, wanted := functions(module.active), functions(module.configured)
			out = append(out, &types.HostSriovInfo{HostPciPassthruInfo: info, SriovCapable: true, SriovEnabled: wanted > 0, SriovActive: active > 0,
				NumVirtualFunction: active, NumVirtualFunctionRequested: wanted, MaxVirtualFunctionSupported: 128})
			continue
		}
		out = append(out, &info)
	}
	return out
}

// sriovModule is the driver of a NIC that can have virtual functions.
func (s *PCI) sriovModule(pci string) (module, bool) {
	for _, n := range s.host.kit.NICs {
		if n.PCI == pci && n.RDMA != "" {
			return s.modules.module(n.Driver)
		}
	}
	return module{}, false
}

// functions is the number of virtual functions that a driver's options ask for on its first port.
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

// show shows the state on the host and on its HostPciPassthruSystem.
func (s *PCI) show(ctx *simulator.Context) {
	s.mu.Lock()
	info := s.passthruInfo()
	s.mu.Unlock()
	s.host.sim.update(ctx, s.host.sim.reg.Get(*s.host.entity.ConfigManager.PciPassthruSystem), change("pciPassthruInfo", info))
	s.host.push(ctx, change("config.pciPassthruInfo", info))
}

// UpdatePassthruConfig enables and disables devices for the next boot.
func (s *passthruSystem) UpdatePassthruConfig(ctx *simulator.Context, req *types.UpdatePassthruConfig) soap.HasFault {
	body := new(methods.UpdatePassthruConfigBody)
	if body.Fault_ = s.pci.host.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := s.pci.enable(req.Config); f != nil {
		body.Fault_ = soapFault(f)
		return body
	}
	s.pci.show(ctx)
	s.pci.host.showReboot(ctx)
	body.Res = new(types.UpdatePassthruConfigResponse)
	return body
}

// enable stores which devices are in DirectPath from the next boot on.
func (s *PCI) enable(config []types.BaseHostPciPassthruConfig) types.BaseMethodFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.passthru)
	for _, c := range config {
		want := c.GetHostPciPassthruConfig()
		p, ok := next[want.Id]
		if !ok || (want.PassthruEnabled && !p.capable) {
			return &types.InvalidArgument{InvalidProperty: "config.id"}
		}
		p.enabled, p.label = want.PassthruEnabled, orText(want.HardwareLabel, p.label)
		next[want.Id] = p
	}
	s.passthru = next
	return nil
}

// Refresh is answered; there is nothing to find out.
func (s *passthruSystem) Refresh(*types.Refresh) soap.HasFault {
	return &methods.RefreshBody{Res: new(types.RefreshResponse)}
}

// offer adds the devices in DirectPath to what the host offers to virtual machines.
func (s *PCI) offer(target *types.ConfigTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		p := s.passthru[d.Id]
		if !p.active {
			continue
		}
		info := types.VirtualMachineTargetInfo{Name: d.DeviceName}
		target.PciPassthrough = append(target.PciPassthrough, &types.VirtualMachinePciPassthroughInfo{VirtualMachineTargetInfo: info, PciDevice: d, SystemId: s.systemID()})
		target.DynamicPassthrough = append(target.DynamicPassthrough, types.VirtualMachineDynamicPassthroughInfo{VirtualMachineTargetInfo: info,
			VendorName: d.VendorName, DeviceName: d.DeviceName, CustomLabel: p.label, VendorId: int32(uint16(d.VendorId)), DeviceId: int32(uint16(d.DeviceId))})
	}
}

// systemID is how the host names itself in passthrough backings.
func (s *PCI) systemID() string { return fmt.Sprintf("lab-%s", s.host.self.Value) }

// adapter gives a PCI device of the host to a virtual machine; "gpu" is the host's first GPU.
func (s *PCI) adapter(id string) *types.VirtualPCIPassthrough {
	backing := &types.VirtualPCIPassthroughDeviceBackingInfo{Id: id, SystemId: s.systemID()}
	for _, g := range s.host.kit.GPUs {
		if id == "gpu" || id == g.PCI {
			model := s.host.sim.desc.GPUModels[g.Model]
			backing.Id, backing.VendorId, backing.DeviceId, backing.DeviceName = g.PCI, signed(model.VendorID), fmt.Sprintf("%x", model.DeviceID), model.Name
			break
		}
	}
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: -102, Backing: backing}}
}
