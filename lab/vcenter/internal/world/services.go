package world

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// serviceSystem is a host's HostServiceSystem.
type serviceSystem struct {
	mo.HostServiceSystem
	host *Host
}

func (h *Host) installServices(ctx *simulator.Context) {
	service := func(key, label, policy string, running bool, ruleset ...string) types.HostService {
		return types.HostService{Key: key, Label: label, Policy: policy, Running: running, Ruleset: ruleset}
	}
	h.services = []types.HostService{
		service("DCUI", "Direct Console UI", "on", true), service("TSM", "ESXi Shell", "off", false), service("TSM-SSH", "SSH", "off", false, "sshServer"),
		service("ntpd", "NTP Daemon", "on", true, "ntpClient"), service("ptpd", "PTP Daemon", "off", false),
		service("slpd", "slpd", "off", false), service("vpxa", "VMware vCenter Agent", "on", true, "vpxHeartbeats"), service("xorg", "X.Org Server", "automatic", true),
	}
	s := &serviceSystem{host: h}
	s.Self = h.managerRef("HostServiceSystem", "serviceSystem")
	h.entity.ConfigManager.ServiceSystem = h.manager(ctx, s)
	h.showServices(ctx)
}

func (h *Host) showServices(ctx *simulator.Context) {
	h.mu.Lock()
	list := slices.Clone(h.services)
	if h.image.has(isGPUDaemon) {
		list = append(list, types.HostService{Key: "nvdGpuMgmtDaemon", Label: "NVIDIA GPU management daemon", Policy: "on", Running: true})
	}
	h.mu.Unlock()
	info := types.HostServiceInfo{Service: list}
	h.world.update(ctx, h.world.reg.Get(*h.entity.ConfigManager.ServiceSystem), change("serviceInfo", info))
	h.push(ctx, change("config.service", info))
}

// service changes one service by f, which says whether the service is in the right state.
func (h *Host) service(ctx *simulator.Context, key string, f func(*types.HostService) bool) *soap.Fault {
	if fault := h.unreachable(ctx); fault != nil {
		return fault
	}
	h.mu.Lock()
	list := slices.Clone(h.services)
	i := slices.IndexFunc(list, func(s types.HostService) bool { return s.Key == key })
	fine := i >= 0 && f(&list[i])
	if fine {
		h.services = list
	}
	h.mu.Unlock()
	switch {
	case i < 0:
		return soapFault(new(types.NotFound))
	case !fine:
		return soapFault(new(types.InvalidState))
	}
	h.showServices(ctx)
	return nil
}

// StartService starts a stopped service.
func (s *serviceSystem) StartService(ctx *simulator.Context, req *types.StartService) soap.HasFault {
	body := new(methods.StartServiceBody)
	body.Fault_ = s.host.service(ctx, req.Id, func(v *types.HostService) bool { was := v.Running; v.Running = true; return !was })
	if body.Fault_ == nil {
		s.host.started(ctx, req.Id)
		body.Res = new(types.StartServiceResponse)
	}
	return body
}

// StopService stops a running service.
func (s *serviceSystem) StopService(ctx *simulator.Context, req *types.StopService) soap.HasFault {
	body := new(methods.StopServiceBody)
	body.Fault_ = s.host.service(ctx, req.Id, func(v *types.HostService) bool { was := v.Running; v.Running = false; return was })
	if body.Fault_ == nil {
		body.Res = new(types.StopServiceResponse)
	}
	return body
}

// RestartService restarts a service; of xorg it makes the configured graphics types the active ones.
func (s *serviceSystem) RestartService(ctx *simulator.Context, req *types.RestartService) soap.HasFault {
	body := new(methods.RestartServiceBody)
	body.Fault_ = s.host.service(ctx, req.Id, func(v *types.HostService) bool { v.Running = true; return true })
	if body.Fault_ == nil {
		s.host.started(ctx, req.Id)
		body.Res = new(types.RestartServiceResponse)
	}
	return body
}

func (h *Host) started(ctx *simulator.Context, key string) {
	if key == "xorg" {
		h.activateGraphics(ctx)
	}
}

// UpdateServicePolicy sets when a service starts by itself.
func (s *serviceSystem) UpdateServicePolicy(ctx *simulator.Context, req *types.UpdateServicePolicy) soap.HasFault {
	body := new(methods.UpdateServicePolicyBody)
	if !slices.Contains([]string{"on", "off", "automatic"}, req.Policy) {
		body.Fault_ = soapFault(&types.InvalidArgument{InvalidProperty: "policy"})
		return body
	}
	body.Fault_ = s.host.service(ctx, req.Id, func(v *types.HostService) bool { v.Policy = req.Policy; return true })
	if body.Fault_ == nil {
		body.Res = new(types.UpdateServicePolicyResponse)
	}
	return body
}

// RefreshServices is answered; there is nothing to find out.
func (s *serviceSystem) RefreshServices(*types.RefreshServices) soap.HasFault {
	return &methods.RefreshServicesBody{Res: new(types.RefreshServicesResponse)}
}
