package services

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host"
)

// dateTimeSystem is a host's HostDateTimeSystem.
type dateTimeSystem struct {
	mo.HostDateTimeSystem
	host *host.Host
}

// QueryDateTime returns the time of the host, which differs from that of a vCenter whose clock was set.
// VMware: vSphere API reference, HostDateTimeSystem.QueryDateTime.
func (s *dateTimeSystem) QueryDateTime(ctx *simulator.Context, _ *types.QueryDateTime) soap.HasFault {
	body := new(methods.QueryDateTimeBody)
	if body.Fault_ = s.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	body.Res = &types.QueryDateTimeResponse{Returnval: s.host.Sim.Clock.Now().UTC()}
	return body
}
