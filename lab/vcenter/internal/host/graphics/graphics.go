// Package graphics simulates the GPUs of a host: graphics types, vGPU types, the placement of vGPUs, load.
//
// vcsim: nothing.
package graphics

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/host/modules"
	"dml.vsphere/lab/vcenter/internal/host/pci"
	"dml.vsphere/lab/vcenter/internal/host/software"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// System is the GPUs of a host: the configured graphics types, the active ones, and the vGPUs in use.
type System struct {
	host     *host.Host
	modules  *modules.System
	pci      *pci.System
	software *software.System

	mu     sync.Mutex // guards what follows; never held while a vcsim lock is taken
	config types.HostGraphicsConfig
	active map[string]string             // graphics types since the last boot or restart of xorg, by PCI address
	loaded bool                          // NVIDIA's driver is loaded
	slots  map[string][]slot             // vGPUs in use, by PCI address
	loads  map[string]datacentre.GPULoad // by PCI address; other GPUs are not measured
}

// graphicsManager is a host's HostGraphicsManager.
type graphicsManager struct {
	mo.HostGraphicsManager
	graphics *System
}

// New applies the graphics configuration of the description, both configured and active.
func New(
	ctx *simulator.Context, h *host.Host, cli *esxcli.Executer, modules *modules.System, pci *pci.System,
	software *software.System,
) *System {
	c := types.HostGraphicsConfig{HostDefaultGraphicsType: h.Spec.Graphics.Default,
		SharedPassthruAssignmentPolicy: h.Spec.Graphics.Policy}
	for _, g := range h.Hardware.GPUs {
		c.DeviceType = append(c.DeviceType,
			types.HostGraphicsConfigDeviceType{DeviceId: g.PCI, GraphicsType: c.HostDefaultGraphicsType})
	}
	s := &System{host: h, modules: modules, pci: pci, software: software, config: c, loads: maps.Clone(h.Spec.GPULoad)}
	m := &graphicsManager{graphics: s}
	m.Self = h.ManagerRef("HostGraphicsManager", "graphicsManager")
	h.Entity.ConfigManager.GraphicsManager = h.Manager(ctx, m)
	cli.Add(s.commands())
	s.LoadDriver()
	s.Activate(ctx)
	return s
}

// UnloadDriver ends NVIDIA's driver, as a shutdown does.
func (s *System) UnloadDriver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = false
	s.modules.Unload("nvidia")
}

// LoadDriver loads NVIDIA's driver if the running image has its package.
// VMware: NVIDIA AI Enterprise user guide for vSphere: the driver is loaded at the reboot after the installation of
// the package.
func (s *System) LoadDriver() {
	driver, installed := s.software.GPUDriver()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = len(s.host.Hardware.GPUs) > 0 && installed
	s.modules.Unload("nvidia")
	if s.loaded {
		s.modules.Load("nvidia", driver.Version)
	}
}

// Activate makes the configured graphics types the active ones: direct for a GPU in DirectPath, basic without a
// driver.
// VMware: vSphere API reference, HostGraphicsInfo.graphicsType; NVIDIA's guide: a change needs a reboot or a restart
// of xorg.
func (s *System) Activate(ctx *simulator.Context) {
	s.mu.Lock()
	active := map[string]string{}
	for _, d := range s.config.DeviceType {
		switch {
		case s.pci.Active(d.DeviceId):
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

// info returns the state of the GPUs as HostGraphicsInfo. The caller holds the lock.
func (s *System) info() []types.HostGraphicsInfo {
	var out []types.HostGraphicsInfo
	for _, g := range s.host.Hardware.GPUs {
		m := s.host.Sim.Description.GPUModels[g.Model]
		info := types.HostGraphicsInfo{DeviceName: m.Name, VendorName: pci.NVIDIA, PciId: g.PCI,
			MemorySizeInKB: m.MemoryMB << 10, GraphicsType: s.active[g.PCI], VgpuMode: "none"}
		if info.GraphicsType == string(types.HostGraphicsInfoGraphicsTypeSharedDirect) {
			info.VgpuMode = "sameSize"
			for _, d := range s.config.DeviceType {
				if d.DeviceId == g.PCI {
					info.VgpuMode = cmp.Or(d.VgpuMode, info.VgpuMode)
				}
			}
			if g.MIG {
				info.VgpuMode = "multiInstanceGpu"
			}
		}
		for _, use := range s.slots[g.PCI] {
			if !use.reserved() {
				info.Vm = append(info.Vm, use.vm)
			}
		}
		out = append(out, info)
	}
	return out
}

// offers reports whether a GPU offers vGPU types: NVIDIA's driver is loaded and the GPU is not in DirectPath. The
// caller holds the lock.
// VMware: F. Denneman's posts on vSphere 8 and GPUs (2023): DirectPath and vGPU exclude each other on one GPU.
func (s *System) offers(g datacentre.GPU) bool { return s.loaded && !s.pci.Active(g.PCI) }

// profilesOf returns the vGPU types of a GPU: the MIG types if MIG is on, or else the time-sliced types.
// VMware: NVIDIA vGPU user guide: a GPU in MIG mode has only MIG-backed types.
func (s *System) profilesOf(g datacentre.GPU) []datacentre.Profile {
	return slices.DeleteFunc(slices.Clone(s.host.Sim.Description.GPUModels[g.Model].Profiles),
		func(p datacentre.Profile) bool { return (p.Sharing == "mig") != g.MIG })
}

// offeredProfiles returns the vGPU types that the host offers, each once. The caller holds the lock.
func (s *System) offeredProfiles() []datacentre.Profile {
	var out []datacentre.Profile
	for _, g := range s.host.Hardware.GPUs {
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

// show shows the graphics on the HostGraphicsManager and in the configuration of the host.
func (s *System) show(ctx *simulator.Context) {
	s.mu.Lock()
	info, config := s.info(), s.config
	names, capabilities := []string{}, []types.HostSharedGpuCapabilities{}
	for _, p := range s.offeredProfiles() {
		names = append(names, p.Name)
		capabilities = append(capabilities,
			types.HostSharedGpuCapabilities{Vgpu: p.Name, SuspendSupported: true, MigrateSupported: true})
	}
	s.mu.Unlock()
	manager := s.host.Sim.Registry.Get(*s.host.Entity.ConfigManager.GraphicsManager)
	s.host.Sim.Update(ctx, manager, vcsim.Change("graphicsInfo", info), vcsim.Change("graphicsConfig", config),
		vcsim.Change("sharedPassthruGpuTypes", names), vcsim.Change("sharedGpuCapabilities", capabilities))
	s.host.Push(ctx, vcsim.Change("config.graphicsInfo", info), vcsim.Change("config.graphicsConfig", config),
		vcsim.Change("config.sharedPassthruGpuTypes", names),
		vcsim.Change("config.sharedGpuCapabilities", capabilities))
}

// UpdateGraphicsConfig stores a complete configuration; a reboot or a restart of xorg activates it.
// VMware: vSphere API reference, HostGraphicsManager.UpdateGraphicsConfig, HostGraphicsConfig.
// Ours: InvalidArgument for an unknown device, type, policy or vgpuMode (unproven: pyVmomi's tables declare no fault).
func (m *graphicsManager) UpdateGraphicsConfig(ctx *simulator.Context, req *types.UpdateGraphicsConfig) soap.HasFault {
	s, body := m.graphics, new(methods.UpdateGraphicsConfigBody)
	if body.Fault_ = s.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if f := s.refuse(req.Config); f != nil {
		body.Fault_ = vcsim.SoapFault(f)
		return body
	}
	s.configure(ctx, req.Config)
	body.Res = new(types.UpdateGraphicsConfigResponse)
	return body
}

func (s *System) refuse(c types.HostGraphicsConfig) vcsim.Fault {
	bad := func(property string) vcsim.Fault { return &types.InvalidArgument{InvalidProperty: property} }
	kinds := []string{string(types.HostGraphicsConfigGraphicsTypeShared),
		string(types.HostGraphicsConfigGraphicsTypeSharedDirect)}
	policies := []string{string(types.HostGraphicsConfigSharedPassthruAssignmentPolicyPerformance),
		string(types.HostGraphicsConfigSharedPassthruAssignmentPolicyConsolidation)}
	switch {
	case !slices.Contains(kinds, c.HostDefaultGraphicsType):
		return bad("config.hostDefaultGraphicsType")
	case !slices.Contains(policies, c.SharedPassthruAssignmentPolicy):
		return bad("config.sharedPassthruAssignmentPolicy")
	}
	for _, d := range c.DeviceType {
		switch {
		case !slices.ContainsFunc(s.host.Hardware.GPUs, func(g datacentre.GPU) bool { return g.PCI == d.DeviceId }):
			return bad("config.deviceType.deviceId")
		case !slices.Contains(kinds, d.GraphicsType):
			return bad("config.deviceType.graphicsType")
		case d.VgpuMode != "" && d.VgpuMode != "sameSize" && d.VgpuMode != "mixedSize":
			return bad("config.deviceType.vgpuMode")
		}
	}
	return nil
}

// configure stores a configuration; devices that are not in it keep their type.
// Ours: whether a vCenter keeps or resets devices that are not in it is unknown (unproven).
func (s *System) configure(ctx *simulator.Context, c types.HostGraphicsConfig) {
	s.mu.Lock()
	devices := slices.Clone(s.config.DeviceType)
	for _, d := range c.DeviceType {
		i := slices.IndexFunc(devices, func(old types.HostGraphicsConfigDeviceType) bool {
			return old.DeviceId == d.DeviceId
		})
		devices[i] = d
	}
	c.DeviceType = devices
	s.config = c
	s.mu.Unlock()
	s.show(ctx)
}

// IsSharedGraphicsActive reports whether xorg shares a GPU.
// VMware: vSphere API reference, HostGraphicsManager.IsSharedGraphicsActive.
func (m *graphicsManager) IsSharedGraphicsActive(*types.IsSharedGraphicsActive) soap.HasFault {
	m.graphics.mu.Lock()
	defer m.graphics.mu.Unlock()
	active := false
	for _, kind := range m.graphics.active {
		active = active || kind == string(types.HostGraphicsInfoGraphicsTypeShared)
	}
	return &methods.IsSharedGraphicsActiveBody{Res: &types.IsSharedGraphicsActiveResponse{Returnval: active}}
}

// RefreshGraphicsManager returns success; there is nothing to refresh.
// VMware: vSphere API reference, HostGraphicsManager.RefreshGraphicsManager.
func (m *graphicsManager) RefreshGraphicsManager(*types.RefreshGraphicsManager) soap.HasFault {
	return &methods.RefreshGraphicsManagerBody{Res: new(types.RefreshGraphicsManagerResponse)}
}

// OffersProfile reports whether the host offers a vGPU type.
func (s *System) OffersProfile(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.offeredProfiles(), func(p datacentre.Profile) bool { return p.Name == name })
}
