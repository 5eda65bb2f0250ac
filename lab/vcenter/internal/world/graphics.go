package world

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

const nvidia = "NVIDIA Corporation"

// graphics is a host's graphics: the configuration, and per GPU the type that is active since the last boot or
// restart of xorg.
type graphics struct {
	config types.HostGraphicsConfig
	active map[string]string
	loaded bool // NVIDIA's driver runs
}

// graphicsManager is a host's HostGraphicsManager.
type graphicsManager struct {
	mo.HostGraphicsManager
	host *Host
}

func (h *Host) installGraphics(ctx *simulator.Context) {
	c := types.HostGraphicsConfig{HostDefaultGraphicsType: h.spec.Graphics.Default, SharedPassthruAssignmentPolicy: h.spec.Graphics.Policy}
	for _, g := range h.kit.GPUs {
		c.DeviceType = append(c.DeviceType, types.HostGraphicsConfigDeviceType{DeviceId: g.PCI, GraphicsType: c.HostDefaultGraphicsType})
	}
	h.graphics = graphics{config: c}
	m := &graphicsManager{host: h}
	m.Self = h.managerRef("HostGraphicsManager", "graphicsManager")
	h.entity.ConfigManager.GraphicsManager = h.manager(ctx, m)
	h.loadDriver()
	h.activateGraphics(ctx)
}

// loadDriver loads NVIDIA's driver if the running image has it, as a boot does. The driver is not loaded otherwise.
func (h *Host) loadDriver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.graphics.loaded = len(h.kit.GPUs) > 0 && h.image.has(isGPUDriver)
	delete(h.modules, "nvidia")
	if h.graphics.loaded {
		for _, v := range h.image.sorted() {
			if isGPUDriver.MatchString(v.Name) {
				h.modules["nvidia"] = &module{name: "nvidia", version: v.Version, file: "/usr/lib/vmware/vmkmod/nvidia", loaded: true}
			}
		}
	}
}

// activateGraphics makes the configured types the active ones.
func (h *Host) activateGraphics(ctx *simulator.Context) {
	h.mu.Lock()
	active := map[string]string{}
	for _, d := range h.graphics.config.DeviceType {
		switch {
		case h.passthru[d.DeviceId].active:
			active[d.DeviceId] = string(types.HostGraphicsInfoGraphicsTypeDirect)
		case !h.graphics.loaded:
			active[d.DeviceId] = string(types.HostGraphicsInfoGraphicsTypeBasic)
		default:
			active[d.DeviceId] = d.GraphicsType
		}
	}
	h.graphics.active = active
	h.mu.Unlock()
	h.showGraphics(ctx)
}

// graphicsInfo is what the host's GPUs are and do. The caller holds the host's lock.
func (h *Host) graphicsInfo() []types.HostGraphicsInfo {
	var out []types.HostGraphicsInfo
	for _, g := range h.kit.GPUs {
		m := h.world.desc.GPUModels[g.Model]
		info := types.HostGraphicsInfo{DeviceName: m.Name, VendorName: nvidia, PciId: g.PCI, MemorySizeInKB: m.MemoryMB << 10, GraphicsType: h.graphics.active[g.PCI], VgpuMode: "none"}
		if info.GraphicsType == string(types.HostGraphicsInfoGraphicsTypeSharedDirect) {
			info.VgpuMode = "sameSize"
			for _, d := range h.graphics.config.DeviceType {
				if d.DeviceId == g.PCI {
					info.VgpuMode = orText(d.VgpuMode, info.VgpuMode)
				}
			}
			if g.MIG {
				info.VgpuMode = "multiInstanceGpu"
			}
		}
		for _, use := range h.slots[g.PCI] {
			info.Vm = append(info.Vm, use.vm)
		}
		out = append(out, info)
	}
	return out
}

// offers says whether a GPU offers vGPU types. The caller holds the host's lock.
func (h *Host) offers(g datacentre.GPU) bool { return h.graphics.loaded && !h.passthru[g.PCI].active }

// profilesOf are the vGPU types of a GPU: its MIG types while MIG is on, else the time-sliced ones.
func (w *World) profilesOf(g datacentre.GPU) []datacentre.Profile {
	return slices.DeleteFunc(slices.Clone(w.desc.GPUModels[g.Model].Profiles), func(p datacentre.Profile) bool { return (p.Sharing == "mig") != g.MIG })
}

// offered are the vGPU types the host offers, each once. The caller holds the host's lock.
func (h *Host) offeredProfiles() []datacentre.Profile {
	var out []datacentre.Profile
	for _, g := range h.kit.GPUs {
		if !h.offers(g) {
			continue
		}
		for _, p := range h.world.profilesOf(g) {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// showGraphics shows the graphics on the manager and on the host.
func (h *Host) showGraphics(ctx *simulator.Context) {
	h.mu.Lock()
	info, config := h.graphicsInfo(), h.graphics.config
	names, capabilities := []string{}, []types.HostSharedGpuCapabilities{}
	for _, p := range h.offeredProfiles() {
		names = append(names, p.Name)
		capabilities = append(capabilities, types.HostSharedGpuCapabilities{Vgpu: p.Name, SuspendSupported: true, MigrateSupported: true})
	}
	h.mu.Unlock()
	manager := h.world.reg.Get(*h.entity.ConfigManager.GraphicsManager)
	h.world.update(ctx, manager, change("graphicsInfo", info), change("graphicsConfig", config),
		change("sharedPassthruGpuTypes", names), change("sharedGpuCapabilities", capabilities))
	h.push(ctx, change("config.graphicsInfo", info), change("config.graphicsConfig", config),
		change("config.sharedPassthruGpuTypes", names), change("config.sharedGpuCapabilities", capabilities))
}

// UpdateGraphicsConfig stores a whole configuration, to be active later.
func (m *graphicsManager) UpdateGraphicsConfig(ctx *simulator.Context, req *types.UpdateGraphicsConfig) soap.HasFault {
	h, body := m.host, new(methods.UpdateGraphicsConfigBody)
	if body.Fault_ = h.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := h.refuseGraphics(req.Config); f != nil {
		body.Fault_ = soapFault(f)
		return body
	}
	h.configureGraphics(ctx, req.Config)
	body.Res = new(types.UpdateGraphicsConfigResponse)
	return body
}

func (h *Host) refuseGraphics(c types.HostGraphicsConfig) types.BaseMethodFault {
	bad := func(property string) types.BaseMethodFault { return &types.InvalidArgument{InvalidProperty: property} }
	kinds := []string{string(types.HostGraphicsConfigGraphicsTypeShared), string(types.HostGraphicsConfigGraphicsTypeSharedDirect)}
	policies := []string{string(types.HostGraphicsConfigSharedPassthruAssignmentPolicyPerformance), string(types.HostGraphicsConfigSharedPassthruAssignmentPolicyConsolidation)}
	switch {
	case !slices.Contains(kinds, c.HostDefaultGraphicsType):
		return bad("config.hostDefaultGraphicsType")
	case !slices.Contains(policies, c.SharedPassthruAssignmentPolicy):
		return bad("config.sharedPassthruAssignmentPolicy")
	}
	for _, d := range c.DeviceType {
		switch {
		case !slices.ContainsFunc(h.kit.GPUs, func(g datacentre.GPU) bool { return g.PCI == d.DeviceId }):
			return bad("config.deviceType.deviceId")
		case !slices.Contains(kinds, d.GraphicsType):
			return bad("config.deviceType.graphicsType")
		case d.VgpuMode != "" && d.VgpuMode != "sameSize" && d.VgpuMode != "mixedSize":
			return bad("config.deviceType.vgpuMode")
		}
	}
	return nil
}

// configureGraphics stores a configuration; devices it does not name keep their type.
func (h *Host) configureGraphics(ctx *simulator.Context, c types.HostGraphicsConfig) {
	h.mu.Lock()
	devices := slices.Clone(h.graphics.config.DeviceType)
	for _, d := range c.DeviceType {
		i := slices.IndexFunc(devices, func(old types.HostGraphicsConfigDeviceType) bool { return old.DeviceId == d.DeviceId })
		devices[i] = d
	}
	c.DeviceType = devices
	h.graphics.config = c
	h.mu.Unlock()
	h.showGraphics(ctx)
}

// IsSharedGraphicsActive says whether a GPU is shared by xorg.
func (m *graphicsManager) IsSharedGraphicsActive(*types.IsSharedGraphicsActive) soap.HasFault {
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	active := false
	for _, kind := range m.host.graphics.active {
		active = active || kind == string(types.HostGraphicsInfoGraphicsTypeShared)
	}
	return &methods.IsSharedGraphicsActiveBody{Res: &types.IsSharedGraphicsActiveResponse{Returnval: active}}
}

// RefreshGraphicsManager is answered; there is nothing to find out.
func (m *graphicsManager) RefreshGraphicsManager(*types.RefreshGraphicsManager) soap.HasFault {
	return &methods.RefreshGraphicsManagerBody{Res: new(types.RefreshGraphicsManagerResponse)}
}
