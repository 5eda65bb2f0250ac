package world

import (
	"maps"
	"slices"
	"strconv"
	"strings"

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
	host *Host
}

func (h *Host) installPassthru(ctx *simulator.Context) {
	h.passthru = map[string]passthru{}
	for _, g := range h.kit.GPUs {
		on := slices.Contains(h.spec.Passthrough, "all") || slices.Contains(h.spec.Passthrough, g.PCI)
		h.passthru[g.PCI] = passthru{enabled: on, active: on, capable: true}
	}
	for _, n := range h.kit.NICs {
		on := slices.Contains(h.spec.Passthrough, n.PCI)
		h.passthru[n.PCI] = passthru{enabled: on, active: on, capable: n.RDMA != ""}
	}
	s := &passthruSystem{host: h}
	s.Self = h.managerRef("HostPciPassthruSystem", "pciPassthruSystem")
	h.entity.ConfigManager.PciPassthruSystem = h.manager(ctx, s)
	h.showPassthru(ctx)
}

// gpuInPassthrough is a GPU given to DirectPath now or from the next boot on, "" when there is none.
func (h *Host) gpuInPassthrough() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.kit.GPUs {
		if p := h.passthru[g.PCI]; p.enabled || p.active {
			return g.PCI
		}
	}
	return ""
}

// passthruInfo is the state as the API tells it. The caller holds the host's lock.
func (h *Host) passthruInfo() []types.BaseHostPciPassthruInfo {
	var out []types.BaseHostPciPassthruInfo
	for _, pci := range slices.Sorted(maps.Keys(h.passthru)) {
		p := h.passthru[pci]
		info := types.HostPciPassthruInfo{Id: pci, DependentDevice: pci, PassthruEnabled: p.enabled, PassthruCapable: p.capable, PassthruActive: p.active, HardwareLabel: p.label}
		if module := h.sriovModule(pci); module != nil {
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
func (h *Host) sriovModule(pci string) *module {
	for _, n := range h.kit.NICs {
		if n.PCI == pci && n.RDMA != "" {
			return h.modules[n.Driver]
		}
	}
	return nil
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

func (h *Host) showPassthru(ctx *simulator.Context) {
	h.mu.Lock()
	info := h.passthruInfo()
	h.mu.Unlock()
	h.world.update(ctx, h.world.reg.Get(*h.entity.ConfigManager.PciPassthruSystem), change("pciPassthruInfo", info))
	h.push(ctx, change("config.pciPassthruInfo", info))
}

// UpdatePassthruConfig enables and disables devices for the next boot.
func (s *passthruSystem) UpdatePassthruConfig(ctx *simulator.Context, req *types.UpdatePassthruConfig) soap.HasFault {
	h, body := s.host, new(methods.UpdatePassthruConfigBody)
	if body.Fault_ = h.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := h.setPassthru(req.Config); f != nil {
		body.Fault_ = soapFault(f)
		return body
	}
	h.showPassthru(ctx)
	h.showReboot(ctx)
	body.Res = new(types.UpdatePassthruConfigResponse)
	return body
}

func (h *Host) setPassthru(config []types.BaseHostPciPassthruConfig) types.BaseMethodFault {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := maps.Clone(h.passthru)
	for _, c := range config {
		want := c.GetHostPciPassthruConfig()
		p, ok := next[want.Id]
		if !ok || (want.PassthruEnabled && !p.capable) {
			return &types.InvalidArgument{InvalidProperty: "config.id"}
		}
		p.enabled, p.label = want.PassthruEnabled, orText(want.HardwareLabel, p.label)
		next[want.Id] = p
	}
	h.passthru = next
	return nil
}

// Refresh is answered; there is nothing to find out.
func (s *passthruSystem) Refresh(*types.Refresh) soap.HasFault {
	return &methods.RefreshBody{Res: new(types.RefreshResponse)}
}
