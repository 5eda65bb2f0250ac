package world

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// hostMethods answers the calls to a host that vcsim lacks or takes too lightly.
type hostMethods struct {
	*simulator.HostSystem
	host *ESXi
}

// poweredOn are the powered-on virtual machines of the host, by name.
func (h *ESXi) poweredOn(ctx *simulator.Context) []string {
	var names []string
	for _, o := range h.sim.reg.AllReference("VirtualMachine") {
		vm, ok := o.(*simulator.VirtualMachine)
		if !ok {
			continue
		}
		ctx.WithLock(vm, func() {
			if vm.Runtime.Host != nil && *vm.Runtime.Host == h.self && vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
				names = append(names, vm.Name)
			}
		})
	}
	slices.Sort(names)
	return names
}

// EnterMaintenanceModeTask waits until no virtual machine runs on the host, or until its time is up.
func (m *hostMethods) EnterMaintenanceModeTask(ctx *simulator.Context, req *types.EnterMaintenanceMode_Task) soap.HasFault {
	h, body := m.host, new(methods.EnterMaintenanceMode_TaskBody)
	if body.Fault_ = h.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if m.Runtime.InMaintenanceMode {
		body.Fault_ = soapFault(new(types.InvalidState))
		return body
	}
	t := h.sim.start(ctx, m.HostSystem, "enterMaintenanceModeTask", "HostSystem.enterMaintenanceMode", func(j *job) (types.AnyType, types.BaseMethodFault) {
		return nil, h.enterMaintenance(j, time.Duration(req.Timeout)*time.Second)
	})
	body.Res = &types.EnterMaintenanceMode_TaskResponse{Returnval: t}
	return body
}

func (h *ESXi) enterMaintenance(j *job, timeout time.Duration) types.BaseMethodFault {
	h.sim.post(j.ctx, &types.EnteringMaintenanceModeEvent{HostEvent: h.event()}, j.task.Info.EventChainId)
	j.progress(2)
	for begin := time.Now(); len(h.poweredOn(j.ctx)) > 0; time.Sleep(poll) {
		switch {
		case j.cancelled():
			h.sim.post(j.ctx, &types.CanceledHostOperationEvent{HostEvent: h.event()}, j.task.Info.EventChainId)
			return new(types.RequestCanceled)
		case !h.connected(j.ctx):
			return new(types.HostNotConnected)
		case timeout > 0 && time.Since(begin) > timeout:
			return new(types.Timedout)
		}
	}
	h.push(j.ctx, change("runtime.inMaintenanceMode", true))
	h.sim.post(j.ctx, &types.EnteredMaintenanceModeEvent{HostEvent: h.event()}, j.task.Info.EventChainId)
	return nil
}

// ExitMaintenanceModeTask ends maintenance mode; it is an error when there is none to end.
func (m *hostMethods) ExitMaintenanceModeTask(ctx *simulator.Context, _ *types.ExitMaintenanceMode_Task) soap.HasFault {
	h, body := m.host, new(methods.ExitMaintenanceMode_TaskBody)
	if body.Fault_ = h.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if !m.Runtime.InMaintenanceMode {
		body.Fault_ = soapFault(new(types.InvalidState))
		return body
	}
	t := h.sim.start(ctx, m.HostSystem, "exitMaintenanceModeTask", "HostSystem.exitMaintenanceMode", func(j *job) (types.AnyType, types.BaseMethodFault) {
		h.push(j.ctx, change("runtime.inMaintenanceMode", false))
		h.sim.post(j.ctx, &types.ExitMaintenanceModeEvent{HostEvent: h.event()}, j.task.Info.EventChainId)
		return nil, nil
	})
	body.Res = &types.ExitMaintenanceMode_TaskResponse{Returnval: t}
	return body
}

// RebootHostTask ends as soon as the host goes down; the host comes back later, or never.
func (m *hostMethods) RebootHostTask(ctx *simulator.Context, req *types.RebootHost_Task) soap.HasFault {
	h, body := m.host, new(methods.RebootHost_TaskBody)
	if body.Fault_ = h.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if !m.Runtime.InMaintenanceMode && !req.Force {
		body.Fault_ = soapFault(new(types.InvalidState))
		return body
	}
	t := h.sim.start(ctx, m.HostSystem, "rebootHostTask", "HostSystem.reboot", func(j *job) (types.AnyType, types.BaseMethodFault) {
		go h.reboot(detached(j.ctx))
		return nil, nil
	})
	body.Res = &types.RebootHost_TaskResponse{Returnval: t}
	return body
}

// reboot takes the host away for a while; what was pending is then in force.
func (h *ESXi) reboot(ctx *simulator.Context) {
	h.mu.Lock()
	now := h.behaviour
	h.down, h.behaviour.neverReturns = true, false
	h.mu.Unlock()
	h.push(ctx, change("runtime.connectionState", types.HostSystemConnectionStateNotResponding))
	h.sim.post(ctx, &types.HostConnectionLostEvent{HostEvent: h.event()}, 0)
	if now.neverReturns {
		return
	}
	time.Sleep(time.Duration(now.rebootSeconds * float64(time.Second)))
	h.boot(ctx)
}

// boot makes the pending state the running one and connects the host again.
func (h *ESXi) boot(ctx *simulator.Context) {
	h.mu.Lock()
	h.down = false
	h.mu.Unlock()
	h.modules.boot()
	h.software.boot()
	h.pci.boot()
	h.graphics.loadDriver()
	h.pci.show(ctx)
	h.services.show(ctx)
	h.graphics.activate(ctx)
	h.push(ctx,
		change("runtime.bootTime", h.nextBootTime(ctx)),
		change("summary.rebootRequired", false),
		change("runtime.connectionState", types.HostSystemConnectionStateConnected))
	h.sim.post(ctx, &types.HostConnectedEvent{HostEvent: h.event()}, 0)
}

// nextBootTime is now, but no two boots within one second: no real host does that, and clients may count in seconds.
func (h *ESXi) nextBootTime(ctx *simulator.Context) time.Time {
	now, least := time.Now().UTC(), h.runtime(ctx).BootTime.Add(time.Second)
	if now.Before(least) {
		return least
	}
	return now
}

// QueryHostConnectionInfo is asked by clients that watch a host come back.
func (m *hostMethods) QueryHostConnectionInfo(ctx *simulator.Context, _ *types.QueryHostConnectionInfo) soap.HasFault {
	body := new(methods.QueryHostConnectionInfoBody)
	if body.Fault_ = m.host.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	body.Res = &types.QueryHostConnectionInfoResponse{Returnval: types.HostConnectInfo{ServerIp: m.Name, Host: m.Summary}}
	return body
}

// RetrieveHardwareUptime is the time since the host's boot in seconds.
func (m *hostMethods) RetrieveHardwareUptime(ctx *simulator.Context, _ *types.RetrieveHardwareUptime) soap.HasFault {
	body := new(methods.RetrieveHardwareUptimeBody)
	if body.Fault_ = m.host.unreachable(ctx); body.Fault_ != nil {
		return body
	}
	body.Res = &types.RetrieveHardwareUptimeResponse{Returnval: int64(time.Since(*m.Runtime.BootTime).Seconds())}
	return body
}

// RetrieveManagedMethodExecuter gives out the host's own executer.
func (m *hostMethods) RetrieveManagedMethodExecuter(*simulator.Context, any) soap.HasFault {
	return retrieved(m.host.Host)
}
