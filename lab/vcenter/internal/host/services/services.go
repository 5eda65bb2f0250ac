// Package services simulates the services, the firewall and the clock of a host.
//
// vcsim: the rulesets of the firewall as data.
package services

import (
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/host/graphics"
	"dml.vsphere/lab/vcenter/internal/host/software"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// serviceSystem is a host's HostServiceSystem.
type serviceSystem struct {
	mo.HostServiceSystem
	services *System
}

// System are the services, the firewall and the clock of a host.
type System struct {
	host     *host.Host
	software *software.System
	graphics *graphics.System

	mu       sync.Mutex // guards what follows; never held while a vcsim lock is taken
	services []types.HostService
	rulesets []types.HostFirewallRuleset
}

// New starts the services of a new ESXi, with the firewall of the description.
func New(
	ctx *simulator.Context, h *host.Host, cli *esxcli.Executer, software *software.System, graphics *graphics.System,
) *System {
	s := &System{host: h, software: software, graphics: graphics, services: stockServices()}
	m := &serviceSystem{services: s}
	m.Self = h.ManagerRef("HostServiceSystem", "serviceSystem")
	h.Entity.ConfigManager.ServiceSystem = h.Manager(ctx, m)
	clock := &dateTimeSystem{host: h}
	clock.Self = h.ManagerRef("HostDateTimeSystem", "dateTimeSystem")
	h.Entity.ConfigManager.DateTimeSystem = h.Manager(ctx, clock)
	s.Show(ctx)
	s.openFirewall(ctx)
	cli.Add(s.commands())
	return s
}

// stockServices returns the services of a new ESXi that clients of the lab read.
// VMware: vSphere API reference, HostService: key, policy, running, ruleset.
// Ours: the selection, and that SSH is off.
func stockServices() []types.HostService {
	service := func(key, label, policy string, running bool, ruleset ...string) types.HostService {
		return types.HostService{Key: key, Label: label, Policy: policy, Running: running, Ruleset: ruleset}
	}
	return []types.HostService{
		service("DCUI", "Direct Console UI", "on", true), service("TSM", "ESXi Shell", "off", false),
		service("TSM-SSH", "SSH", "off", false, "sshServer"),
		service("ntpd", "NTP Daemon", "on", true, "ntpClient"), service("ptpd", "PTP Daemon", "off", false),
		service("slpd", "slpd", "off", false), service("vpxa", "VMware vCenter Agent", "on", true, "vpxHeartbeats"),
		service("xorg", "X.Org Server", "automatic", true),
	}
}

// Show shows the services on the host and on its HostServiceSystem. NVIDIA's daemon is a service if its package is
// running.
// Ours: key and label of NVIDIA's daemon (unproven).
func (s *System) Show(ctx *simulator.Context) {
	s.mu.Lock()
	list := slices.Clone(s.services)
	if s.software.HasGPUDaemon() {
		list = append(list, types.HostService{Key: "nvdGpuMgmtDaemon", Label: "NVIDIA GPU management daemon",
			Policy: "on", Running: true})
	}
	s.mu.Unlock()
	info := types.HostServiceInfo{Service: list}
	s.host.Sim.Update(ctx, s.host.Sim.Registry.Get(*s.host.Entity.ConfigManager.ServiceSystem),
		vcsim.Change("serviceInfo", info))
	s.host.Push(ctx, vcsim.Change("config.service", info))
}

// service changes one service with f, which reports whether the service was in a valid state.
func (s *System) service(ctx *simulator.Context, key string, f func(*types.HostService) bool) *soap.Fault {
	if fault := s.host.Unreachable(ctx); fault != nil {
		return fault
	}
	s.mu.Lock()
	list := slices.Clone(s.services)
	i := slices.IndexFunc(list, func(v types.HostService) bool { return v.Key == key })
	fine := i >= 0 && f(&list[i])
	if fine {
		s.services = list
	}
	s.mu.Unlock()
	switch {
	case i < 0:
		return vcsim.SoapFault(new(types.NotFound))
	case !fine:
		return vcsim.SoapFault(new(types.InvalidState))
	}
	s.Show(ctx)
	return nil
}

// StartService starts a stopped service.
// VMware: pyVmomi 9.1, faults of StartService: InvalidState, NotFound.
func (s *serviceSystem) StartService(ctx *simulator.Context, req *types.StartService) soap.HasFault {
	body := new(methods.StartServiceBody)
	body.Fault_ = s.services.service(ctx, req.Id, func(v *types.HostService) bool {
		was := v.Running
		v.Running = true
		return !was
	})
	if body.Fault_ == nil {
		s.services.started(ctx, req.Id)
		body.Res = new(types.StartServiceResponse)
	}
	return body
}

// StopService stops a running service.
// VMware: pyVmomi 9.1, faults of StopService: InvalidState, NotFound.
func (s *serviceSystem) StopService(ctx *simulator.Context, req *types.StopService) soap.HasFault {
	body := new(methods.StopServiceBody)
	body.Fault_ = s.services.service(ctx, req.Id, func(v *types.HostService) bool {
		was := v.Running
		v.Running = false
		return was
	})
	if body.Fault_ == nil {
		body.Res = new(types.StopServiceResponse)
	}
	return body
}

// RestartService restarts a service; a restart of xorg activates the configured graphics types.
// VMware: NVIDIA AI Enterprise user guide for vSphere: restart xorg after a change of the graphics type.
func (s *serviceSystem) RestartService(ctx *simulator.Context, req *types.RestartService) soap.HasFault {
	body := new(methods.RestartServiceBody)
	body.Fault_ = s.services.service(ctx, req.Id, func(v *types.HostService) bool { v.Running = true; return true })
	if body.Fault_ == nil {
		s.services.started(ctx, req.Id)
		body.Res = new(types.RestartServiceResponse)
	}
	return body
}

func (s *System) started(ctx *simulator.Context, key string) {
	if key == "xorg" {
		s.graphics.Activate(ctx)
	}
}

// UpdateServicePolicy sets when a service starts: on, off or automatic.
// VMware: vSphere API reference, HostServicePolicy; pyVmomi 9.1, faults: NotFound.
func (s *serviceSystem) UpdateServicePolicy(ctx *simulator.Context, req *types.UpdateServicePolicy) soap.HasFault {
	body := new(methods.UpdateServicePolicyBody)
	if !slices.Contains([]string{"on", "off", "automatic"}, req.Policy) {
		body.Fault_ = vcsim.SoapFault(&types.InvalidArgument{InvalidProperty: "policy"})
		return body
	}
	body.Fault_ = s.services.service(ctx, req.Id, func(v *types.HostService) bool {
		v.Policy = req.Policy
		return true
	})
	if body.Fault_ == nil {
		body.Res = new(types.UpdateServicePolicyResponse)
	}
	return body
}

// RefreshServices returns success; there is nothing to refresh.
// VMware: vSphere API reference, HostServiceSystem.RefreshServices.
func (s *serviceSystem) RefreshServices(*types.RefreshServices) soap.HasFault {
	return &methods.RefreshServicesBody{Res: new(types.RefreshServicesResponse)}
}
