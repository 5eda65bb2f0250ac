package esxi

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/host/services"
	"dml.vsphere/lab/vcenter/internal/options"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// hostMethods answers the calls to a host that vcsim lacks or answers without checks.
type hostMethods struct {
	*simulator.HostSystem
	host *Host
}

// PoweredOn returns the names of the powered-on virtual machines of the host, sorted.
func (h *Host) PoweredOn(ctx *simulator.Context) []string {
	var names []string
	for _, ref := range h.Machines(ctx) {
		vm, ok := h.Sim.Registry.Get(ref).(*simulator.VirtualMachine)
		if !ok {
			continue
		}
		ctx.WithLock(vm, func() {
			if vm.Runtime.Host != nil && *vm.Runtime.Host == h.Self &&
				vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
				names = append(names, vm.Name)
			}
		})
	}
	slices.Sort(names)
	return names
}

// EnterMaintenanceModeTask waits until no virtual machine runs on the host, until the timeout, or until a client
// cancels it.
// VMware: vSphere API reference, EnterMaintenanceMode_Task: InvalidState if already in maintenance mode, Timedout,
// RequestCanceled.
// Ours: no virtual machine is evacuated, regardless of the DRS settings.
func (m *hostMethods) EnterMaintenanceModeTask(
	ctx *simulator.Context, req *types.EnterMaintenanceMode_Task,
) soap.HasFault {
	h, body := m.host, new(methods.EnterMaintenanceMode_TaskBody)
	if body.Fault_ = h.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if m.Runtime.InMaintenanceMode {
		body.Fault_ = vcsim.SoapFault(new(types.InvalidState))
		return body
	}
	t := h.Sim.Start(ctx, m.HostSystem, "enterMaintenanceModeTask", "HostSystem.enterMaintenanceMode",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			return nil, h.enterMaintenance(j, j.Began, time.Duration(req.Timeout)*time.Second)
		})
	body.Res = &types.EnterMaintenanceMode_TaskResponse{Returnval: t}
	return body
}

func (h *Host) enterMaintenance(j *vcsim.Job, began time.Time, timeout time.Duration) vcsim.Fault {
	h.Sim.Post(j.Ctx, &types.EnteringMaintenanceModeEvent{HostEvent: h.Event()}, j.Task.Info.EventChainId)
	j.Progress(2)
	for ; len(h.PoweredOn(j.Ctx)) > 0; h.Sim.Clock.Sleep(vcsim.Poll) {
		switch {
		case j.Cancelled():
			h.Sim.Post(j.Ctx, &types.CanceledHostOperationEvent{HostEvent: h.Event()}, j.Task.Info.EventChainId)
			return new(types.RequestCanceled)
		case !h.Connected(j.Ctx):
			return new(types.HostNotConnected)
		case timeout > 0 && h.Sim.Clock.Since(began) > timeout:
			return new(types.Timedout)
		}
	}
	h.Push(j.Ctx, vcsim.Change("runtime.inMaintenanceMode", true))
	h.Sim.Post(j.Ctx, &types.EnteredMaintenanceModeEvent{HostEvent: h.Event()}, j.Task.Info.EventChainId)
	return nil
}

// ExitMaintenanceModeTask ends maintenance mode.
// VMware: vSphere API reference, ExitMaintenanceMode_Task: InvalidState outside maintenance mode.
func (m *hostMethods) ExitMaintenanceModeTask(
	ctx *simulator.Context, _ *types.ExitMaintenanceMode_Task,
) soap.HasFault {
	h, body := m.host, new(methods.ExitMaintenanceMode_TaskBody)
	if body.Fault_ = h.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if !m.Runtime.InMaintenanceMode {
		body.Fault_ = vcsim.SoapFault(new(types.InvalidState))
		return body
	}
	t := h.Sim.Start(ctx, m.HostSystem, "exitMaintenanceModeTask", "HostSystem.exitMaintenanceMode",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			h.Push(j.Ctx, vcsim.Change("runtime.inMaintenanceMode", false))
			h.Sim.Post(j.Ctx, &types.ExitMaintenanceModeEvent{HostEvent: h.Event()}, j.Task.Info.EventChainId)
			return nil, nil
		})
	body.Res = &types.ExitMaintenanceMode_TaskResponse{Returnval: t}
	return body
}

// RebootHostTask reboots a host in maintenance mode, or any host with force. The task ends when the host goes down.
// VMware: vSphere API reference, RebootHost_Task: InvalidState outside maintenance mode unless forced; the task may
// end before the host is up.
func (m *hostMethods) RebootHostTask(ctx *simulator.Context, req *types.RebootHost_Task) soap.HasFault {
	h, body := m.host, new(methods.RebootHost_TaskBody)
	if body.Fault_ = h.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if !m.Runtime.InMaintenanceMode && !req.Force {
		body.Fault_ = vcsim.SoapFault(new(types.InvalidState))
		return body
	}
	t := h.Sim.Start(ctx, m.HostSystem, "rebootHostTask", "HostSystem.reboot", func(j *vcsim.Job) (any, vcsim.Fault) {
		go h.reboot(vcsim.Detached(j.Ctx), j.Began)
		return nil, nil
	})
	body.Res = &types.RebootHost_TaskResponse{Returnval: t}
	return body
}

// reboot disconnects the host (notResponding) and boots it after reboot_seconds, or never.
// Ours: virtual machines of a host that is rebooted with force keep running, because HA is not simulated.
func (h *Host) reboot(ctx *simulator.Context, began time.Time) {
	h.mu.Lock()
	now := h.behaviour
	h.down, h.behaviour.neverReturns = true, false
	h.mu.Unlock()
	h.Push(ctx, vcsim.Change("runtime.connectionState", types.HostSystemConnectionStateNotResponding))
	h.Sim.Post(ctx, &types.HostConnectionLostEvent{HostEvent: h.Event()}, 0)
	if now.neverReturns {
		return
	}
	h.Sim.Clock.SleepUntil(began.Add(time.Duration(now.rebootSeconds * float64(time.Second))))
	h.boot(ctx)
}

// boot activates pending module options, packages and DirectPath, sets a new bootTime and connects the host. NVIDIA's
// driver is loaded at once, or driver_seconds later.
// VMware: vSphere API reference, HostRuntimeInfo.bootTime, HostListSummary.rebootRequired; NVIDIA ConnectX driver for
// ESXi user manual: module parameters take effect at the next boot.
func (h *Host) boot(ctx *simulator.Context) {
	h.mu.Lock()
	h.down = false
	delay := time.Duration(h.behaviour.driverSeconds * float64(time.Second))
	h.mu.Unlock()
	h.modules.Boot()
	h.Software.Boot()
	h.PCI.Boot()
	h.Graphics.UnloadDriver()
	if delay > 0 {
		go h.loadDriver(h.Sim.Clock.After(delay))
	} else {
		h.Graphics.LoadDriver()
	}
	h.PCI.Show(ctx)
	h.services.Show(ctx)
	h.Graphics.Activate(ctx)
	h.Push(ctx,
		vcsim.Change("runtime.bootTime", h.nextBootTime(ctx)),
		vcsim.Change("summary.rebootRequired", false),
		vcsim.Change("runtime.connectionState", types.HostSystemConnectionStateConnected))
	h.Sim.Post(ctx, &types.HostConnectedEvent{HostEvent: h.Event()}, 0)
}

// loadDriver loads NVIDIA's driver some time after the boot, and the configured graphics types become active.
// Ours: a host that serves before its GPU driver is loaded (unproven).
func (h *Host) loadDriver(loaded <-chan struct{}) {
	<-loaded
	h.Graphics.LoadDriver()
	h.Graphics.Activate(h.Sim.Context())
}

// nextBootTime returns the current time, but at least a minute after the last boot, so that it may be in the future.
// Ours: hosts of the lab boot in seconds, real ones in minutes. A client may take boot times less than a minute apart
// for one boot with a corrected clock.
func (h *Host) nextBootTime(ctx *simulator.Context) time.Time {
	now, least := h.Sim.Clock.Now().UTC(), h.Runtime(ctx).BootTime.Add(time.Minute)
	if now.Before(least) {
		return least
	}
	return now
}

// uptime returns the time since the boot of the host.
// Ours: zero while the boot time is in the future.
func (h *Host) uptime(ctx *simulator.Context) time.Duration {
	return max(0, h.Sim.Clock.Since(*h.Runtime(ctx).BootTime))
}

// QueryHostConnectionInfo returns the summary of a connected host.
// VMware: vSphere API reference, HostSystem.QueryHostConnectionInfo.
func (m *hostMethods) QueryHostConnectionInfo(ctx *simulator.Context, _ *types.QueryHostConnectionInfo) soap.HasFault {
	body := new(methods.QueryHostConnectionInfoBody)
	if body.Fault_ = m.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	body.Res = &types.QueryHostConnectionInfoResponse{
		Returnval: types.HostConnectInfo{ServerIp: m.Name, Host: m.Summary}}
	return body
}

// RetrieveHardwareUptime returns the time since the boot of the host, in seconds.
// VMware: vSphere API reference, HostSystem.RetrieveHardwareUptime.
func (m *hostMethods) RetrieveHardwareUptime(ctx *simulator.Context, _ *types.RetrieveHardwareUptime) soap.HasFault {
	body := new(methods.RetrieveHardwareUptimeBody)
	if body.Fault_ = m.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	body.Res = &types.RetrieveHardwareUptimeResponse{Returnval: int64(m.host.uptime(ctx).Seconds())}
	return body
}

// RetrieveManagedMethodExecuter returns the executer of the host for esxcli commands.
// VMware: govmomi, cli/esx/executor.go.
func (m *hostMethods) RetrieveManagedMethodExecuter(*simulator.Context, any) soap.HasFault {
	return esxcli.Retrieved(m.host.Host)
}

// RetrieveDynamicTypeManager returns the object that describes the esxcli commands of the host.
// VMware: govmomi, cli/esx/executor.go.
func (m *hostMethods) RetrieveDynamicTypeManager(ctx *simulator.Context, _ any) soap.HasFault {
	return esxcli.Types(ctx, m.host.Host)
}

// Receiver returns the object that answers calls to the host or to one of its managers, or nil if vcsim answers.
func (h *Host) Receiver(object mo.Reference) mo.Reference {
	switch o := object.(type) {
	case *simulator.HostSystem:
		return &hostMethods{HostSystem: o, host: h}
	case *simulator.HostFirewallSystem:
		return &services.FirewallMethods{HostFirewallSystem: o, Services: h.services}
	case *simulator.HostNetworkSystem:
		return &network.SystemMethods{HostNetworkSystem: o, Network: h.network}
	case *simulator.HostVirtualNicManager:
		return &network.VnicManagerMethods{HostVirtualNicManager: o, Network: h.network}
	case *simulator.OptionManager:
		return &options.Methods{OptionManager: o, Host: h.Host}
	}
	return nil
}
