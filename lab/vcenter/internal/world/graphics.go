package world

import (
	"maps"
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

const nvidia = "NVIDIA Corporation"

// Graphics is the GPUs of a host: the configured graphics types, the active ones, and the vGPUs in use.
type Graphics struct {
	host     *Host
	modules  *Modules
	pci      *PCI
	software *Software

	mu     sync.Mutex // guards what follows; never held while a vcsim lock is taken
	config types.HostGraphicsConfig
	active map[string]string             // graphics types since the last boot or restart of xorg, by PCI address
	loaded bool                          // NVIDIA's driver runs
	slots  map[string][]slot             // vGPUs in use, by PCI address
	loads  map[string]datacentre.GPULoad // by PCI address; a GPU that is missing is not measured
}

// graphicsManager is a host's HostGraphicsManager.
type graphicsManager struct {
	mo.HostGraphicsManager
	graphics *Graphics
}

// newGraphics activates the description's configuration.
func newGraphics(ctx *simulator.Context, h *Host, cli *executer, modules *Modules, pci *PCI, software *Software) *Graphics {
	c := types.HostGraphicsConfig{HostDefaultGraphicsType: h.spec.Graphics.Default, SharedPassthruAssignmentPolicy: h.spec.Graphics.Policy}
	for _, g := range h.kit.GPUs {
		c.DeviceType = append(c.DeviceType, types.HostGraphicsConfigDeviceType{DeviceId: g.PCI, GraphicsType: c.HostDefaultGraphicsType})
	}
	s := &Graphics{host: h, modules: modules, pci: pci, software: software, config: c, loads: maps.Clone(h.spec.GPULoad)}
	m := &graphicsManager{graphics: s}
	m.Self = h.managerRef("HostGraphicsManager", "graphicsManager")
	h.entity.ConfigManager.GraphicsManager = h.manager(ctx, m)
	cli.add(s.commands())
	s.loadDriver()
	s.activate(ctx)
	return s
}

// loadDriver loads NVIDIA's driver if the running image has it, as a boot does. The driver is not loaded otherwise.
func (s *Graphics) loadDriver() {
	driver, installed := s.software.gpuDriver()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = len(s.host.kit.GPUs) > 0 && installed
	s.modules.unload("nvidia")
	if s.loaded {
		s.modules.load("nvidia", driver.Version)
	}
}

// activate makes the configured types the active ones.
func (s *Graphics) activate(ctx *simulator.Context) {
	s.mu.Lock()
	active := map[string]string{}
	for _, d := range s.config.DeviceType {
		switch {
		case s.pci.active(d.DeviceId):
			active[d.DeviceId] = string(types.HostGraphicsInfoGraphicsTypeDirect)
		case !s.loaded:
			active[d.DeviceId] = string(types.HostGraphicsInfoGraphicsTypeBasic)
		default:
			active[d.DeviceId] = d.GraphicsType
		}
	}
	s.active = active
	s.mu.Unlock()
	s.show(ctx)
}

// info is what the host's GPUs are and do. The caller holds the lock.
func (s *Graphics) info() []types.HostGraphicsInfo {
	var out []types.HostGraphicsInfo
	for _, g := range s.host.kit.GPUs {
		m := s.host.sim.desc.GPUModels[g.Model]
		info := types.HostGraphicsInfo{DeviceName: m.Name, VendorName: nvidia, PciId: g.PCI, MemorySizeInKB: m.MemoryMB << 10, GraphicsType: s.active[g.PCI], VgpuMode: "none"}
		if info.GraphicsType == string(types.HostGraphicsInfoGraphicsTypeSharedDirect) {
			info.VgpuMode = "sameSize"
			for _, d := range s.config.DeviceType {
				if d.DeviceId == g.PCI {
					info.VgpuMode = orText(d.VgpuMode, info.VgpuMode)
				}
			}
			if g.MIG {
				info.VgpuMode = "multiInstanceGpu"
			}
		}
		for _, use := range s.slots[g.PCI] {
			info.Vm = append(info.Vm, use.vm)
		}
		out = append(out, info)
	}
	return out
}

// offers says whether a GPU offers vGPU types. The caller holds the lock.
func (s *Graphics) offers(g datacentre.GPU) bool { return s.loaded && !s.pci.active(g.PCI) }

// profilesOf are the vGPU types of a GPU: its MIG types while MIG is on, else the time-sliced ones.
func (s *Graphics) profilesOf(g datacentre.GPU) []datacentre.Profile {
	return slices.DeleteFunc(slices.Clone(s.host.sim.desc.GPUModels[g.Model].Profiles), func(p datacentre.Profile) bool { return (p.Sharing == "mig") != g.MIG })
}

// offeredProfiles are the vGPU types the host offers, each once. The caller holds the lock.
func (s *Graphics) offeredProfiles() []datacentre.Profile {
	var out []datacentre.Profile
	for _, g := range s.host.kit.GPUs {
		if !s.offers(g) {
			continue
		}
		for _, p := range s.profilesOf(g) {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// show shows the graphics on the manager and on the host.
func (s *Graphics) show(ctx *simulator.Context) {
	s.mu.Lock()
	info, config := s.info(), s.config
	names, capabilities := []string{}, []types.HostSharedGpuCapabilities{}
	for _, p := range s.offeredProfiles() {
		names = append(names, p.Name)
		capabilities = append(capabilities, types.HostSharedGpuCapabilities{Vgpu: p.Name, SuspendSupported: true, MigrateSupported: true})
	}
	s.mu.Unlock()
	manager := s.host.sim.reg.Get(*s.host.entity.ConfigManager.GraphicsManager)
	s.host.sim.update(ctx, manager, change("graphicsInfo", info), change("graphicsConfig", config),
		change("sharedPassthruGpuTypes", names), change("sharedGpuCapabilities", capabilities))
	s.host.push(ctx, change("config.graphicsInfo", info), change("config.graphicsConfig", config),
		change("config.sharedPassthruGpuTypes", names), change("config.sharedGpuCapabilities", capabilities))
}

// UpdateGraphicsConfig stores a whole configuration, to be active later.
func (m *graphicsManager) UpdateGraphicsConfig(ctx *simulator.Context, req *types.UpdateGraphicsConfig) soap.HasFault {
	s, body := m.graphics, new(methods.UpdateGraphicsConfigBody)
	if body.Fault_ = s.host.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := s.refuse(req.Config); f != nil {
		body.Fault_ = soapFault(f)
		return body
	}
	s.configure(ctx, req.Config)
	body.Res = new(types.UpdateGraphicsConfigResponse)
	return body
}

func (s *Graphics) refuse(c types.HostGraphicsConfig) types.BaseMethodFault {
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
		case !slices.ContainsFunc(s.host.kit.GPUs, func(g datacentre.GPU) bool { return g.PCI == d.DeviceId }):
			return bad("config.deviceType.deviceId")
		case !slices.Contains(kinds, d.GraphicsType):
			return bad("config.deviceType.graphicsType")
		case d.VgpuMode != "" && d.VgpuMode != "sameSize" && d.VgpuMode != "mixedSize":
			return bad("config.deviceType.vgpuMode")
		}
	}
	return nil
}

// configure stores a configuration; devices it does not name keep their type.
func (s *Graphics) configure(ctx *simulator.Context, c types.HostGraphicsConfig) {
	s.mu.Lock()
	devices := slices.Clone(s.config.DeviceType)
	for _, d := range c.DeviceType {
		i := slices.IndexFunc(devices, func(old types.HostGraphicsConfigDeviceType) bool { return old.DeviceId == d.DeviceId })
		devices[i] = d
	}
	c.DeviceType = devices
	s.config = c
	s.mu.Unlock()
	s.show(ctx)
}

// IsSharedGraphicsActive says whether a GPU is shared by xorg.
func (m *graphicsManager) IsSharedGraphicsActive(*types.IsSharedGraphicsActive) soap.HasFault {
	m.graphics.mu.Lock()
	defer m.graphics.mu.Unlock()
	active := false
	for _, kind := range m.graphics.active {
		active = active || kind == string(types.HostGraphicsInfoGraphicsTypeShared)
	}
	return &methods.IsSharedGraphicsActiveBody{Res: &types.IsSharedGraphicsActiveResponse{Returnval: active}}
}

// RefreshGraphicsManager is answered; there is nothing to find out.
func (m *graphicsManager) RefreshGraphicsManager(*types.RefreshGraphicsManager) soap.HasFault {
	return &methods.RefreshGraphicsManagerBody{Res: new(types.RefreshGraphicsManagerResponse)}
}

// offersProfile says whether the host offers a vGPU type.
func (s *Graphics) offersProfile(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.offeredProfiles(), func(p datacentre.Profile) bool { return p.Name == name })
}
