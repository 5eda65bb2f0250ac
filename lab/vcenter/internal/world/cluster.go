package world

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// clusterMethods answers the calls to a cluster that vcsim lacks or takes too lightly.
type clusterMethods struct {
	*simulator.ClusterComputeResource
	world *World
}

// AddHostTask is refused: vcsim stops altogether when a host joins hosts later than ESXi 8.0.2.
func (c *clusterMethods) AddHostTask(*simulator.Context, *types.AddHost_Task) soap.HasFault {
	return &methods.AddHost_TaskBody{Fault_: simulator.Fault("The hosts of this lab are those of its description.", &types.NotSupported{})}
}
