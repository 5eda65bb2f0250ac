package world

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// unreachable is the fault of every call that must reach the host while vCenter has no connection to it.
func (h *Host) unreachable(ctx *simulator.Context) *soap.Fault {
	switch h.runtime(ctx).ConnectionState {
	case types.HostSystemConnectionStateConnected:
		return nil
	case types.HostSystemConnectionStateDisconnected:
		return simulator.Fault("Unable to communicate with the remote host, since it is disconnected.", &types.HostNotConnected{})
	default:
		return simulator.Fault("An error occurred while communicating with the remote host.", &types.HostCommunication{})
	}
}
