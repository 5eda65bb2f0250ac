package world

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// switchVsanOn makes the cluster say that it has vSAN: one that resyncs has.
func (w *World) switchVsanOn(ctx *simulator.Context, cluster *simulator.ClusterComputeResource) {
	ctx.WithLock(cluster, func() {
		config := *cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
		config.VsanConfigInfo = &types.VsanClusterConfigInfo{Enabled: types.NewBool(true)}
		ctx.Update(cluster, []types.PropertyChange{change("configurationEx", &config)})
	})
}
