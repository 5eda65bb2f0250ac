package cluster

import (
	"encoding/json"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// switchVsanOn enables vSAN in the cluster's configuration, because only clusters with vSAN resync.
func switchVsanOn(ctx *simulator.Context, cluster *simulator.ClusterComputeResource) {
	ctx.WithLock(cluster, func() {
		config := *cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
		config.VsanConfigInfo = &types.VsanClusterConfigInfo{Enabled: types.NewBool(true)}
		ctx.Update(cluster, []types.PropertyChange{vcsim.Change("configurationEx", &config)})
	})
}

// vsanInternalSystem is a host's HostVsanInternalSystem, which shows the bytes left to resync.
type vsanInternalSystem struct {
	mo.HostVsanInternalSystem
	clusters *Clusters
	host     *host.Host
}

// AddVsan adds the HostVsanInternalSystem of a host.
func (s *Clusters) AddVsan(ctx *simulator.Context, h *host.Host) {
	m := &vsanInternalSystem{clusters: s, host: h}
	m.Self = h.ManagerRef("HostVsanInternalSystem", "vsanInternalSystem")
	h.Entity.ConfigManager.VsanInternalSystem = h.Manager(ctx, m)
}

// QuerySyncingVsanObjects returns the resyncing vSAN objects as JSON; the control interface sets the bytes left.
// VMware: RVC (github.com/vmware/rvc), vsan.resync_dashboard: the keys that it reads.
// Ours: the rest of the text.
func (s *vsanInternalSystem) QuerySyncingVsanObjects(
	ctx *simulator.Context, _ *types.QuerySyncingVsanObjects,
) soap.HasFault {
	var parent vcsim.Ref
	ctx.WithLock(s.host.Entity, func() { parent = *s.host.Entity.Parent })
	objects := map[string]any{}
	if left := s.clusters.State(parent).VsanResyncBytes; left > 0 {
		component := map[string]any{"type": "Component", "componentUuid": "52d1c0de-0000-0000-0000-000000000002",
			"attributes": map[string]any{"bytesToSync": left, "recoveryETA": 600, "componentState": 10}}
		objects["52d1c0de-0000-0000-0000-000000000001"] = map[string]any{
			"config": map[string]any{"content": map[string]any{"type": "Configuration", "child-1": component}}}
	}
	text, err := json.Marshal(map[string]any{"dom_objects": objects})
	if err != nil {
		panic(err) // encoding maps of plain values cannot fail
	}
	return &methods.QuerySyncingVsanObjectsBody{Res: &types.QuerySyncingVsanObjectsResponse{Returnval: string(text)}}
}
