package world

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Cluster is a cluster and what vcsim does not keep of it.
type Cluster struct {
	world  *World
	entity *simulator.ClusterComputeResource
	state  *clusterState
}

// clusterState is guarded by the world's lock.
type clusterState struct {
	ImageManaged    bool
	ConfigProfile   bool
	VsanResyncBytes int64
	Components      map[string]string // of the image; replaced, never changed in place
	draft           *draft
}

// ClusterChange is what the control interface may do to a cluster; absent fields change nothing.
type ClusterChange struct {
	Alarm           *string           `json:"alarm"`
	DRS             *datacentre.DRS   `json:"drs"`
	HA              *datacentre.HA    `json:"ha"`
	DRSOptions      map[string]string `json:"drs_options"`
	VsanResyncBytes *int64            `json:"vsan_resync_bytes"`
	ImageManaged    *bool             `json:"image_managed"`
	ConfigProfile   *bool             `json:"config_profile"`
	ImageComponents map[string]string `json:"image_components"`
}

// ClusterReport is what the control interface shows of a cluster.
type ClusterReport struct {
	Name string `json:"name"`
	MOID string `json:"moid"`
	clusterState
	DRSOptions map[string]string `json:"drs_options"`
}

// ClusterNamed finds a cluster by its name.
func (w *World) ClusterNamed(name string) (*Cluster, bool) {
	for _, o := range w.reg.AllReference("ClusterComputeResource") {
		if w.Name(o.Reference()) == name {
			entity := o.(*simulator.ClusterComputeResource)
			return &Cluster{world: w, entity: entity, state: w.clusterState(entity.Self)}, true
		}
	}
	return nil, false
}

func (w *World) clusterState(of ref) *clusterState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.clusters[of]
	if !ok {
		s = &clusterState{}
		w.clusters[of] = s
	}
	return s
}

// clusterNow is a copy of a cluster's state.
func (w *World) clusterNow(of ref) clusterState {
	s := w.clusterState(of)
	w.mu.Lock()
	defer w.mu.Unlock()
	return *s
}

// Apply changes the cluster as if somebody else had: nothing is logged as a write.
func (c *Cluster) Apply(ch ClusterChange) error {
	ctx := c.world.context()
	if ch.Alarm != nil {
		if err := c.world.alarm(ctx, c.entity, *ch.Alarm); err != nil {
			return err
		}
	}
	if ch.DRS != nil || ch.HA != nil || ch.DRSOptions != nil {
		c.world.configure(ctx, c.entity, clusterSpec(ch.DRS, ch.HA, ch.DRSOptions))
	}
	if ch.VsanResyncBytes != nil {
		c.world.switchVsanOn(ctx, c.entity)
	}
	if ch.ImageManaged != nil {
		c.world.setImageManaged(c.entity.Self, *ch.ImageManaged)
	}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if ch.VsanResyncBytes != nil {
		c.state.VsanResyncBytes = *ch.VsanResyncBytes
	}
	if ch.ImageComponents != nil {
		c.state.Components = ch.ImageComponents
	}
	if ch.ConfigProfile != nil {
		c.state.ConfigProfile = *ch.ConfigProfile
	}
	return nil
}

// setImageManaged says whether the cluster is managed by an image, over REST and as the cluster's own property.
func (w *World) setImageManaged(cluster ref, on bool) {
	state := w.clusterState(cluster)
	w.mu.Lock()
	state.ImageManaged = on
	w.mu.Unlock()
	w.update(w.context(), w.reg.Get(cluster), change("lifecycleManaged", on))
}

// Report is the cluster's state now.
func (c *Cluster) Report() ClusterReport {
	ctx := c.world.context()
	r := ClusterReport{MOID: c.entity.Self.Value, clusterState: c.world.clusterNow(c.entity.Self), DRSOptions: map[string]string{}}
	ctx.WithLock(c.entity, func() {
		r.Name = c.entity.Name
		for _, o := range c.entity.ConfigurationEx.(*types.ClusterConfigInfoEx).DrsConfig.Option {
			r.DRSOptions[o.GetOptionValue().Key] = fmt.Sprint(o.GetOptionValue().Value)
		}
	})
	return r
}

// MarshalJSON flattens the state into the report.
func (r ClusterReport) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"name": r.Name, "moid": r.MOID, "image_managed": r.ImageManaged, "config_profile": r.ConfigProfile,
		"vsan_resync_bytes": r.VsanResyncBytes, "drs_options": r.DRSOptions,
		"image_components": r.Components,
	})
}

// clusterSpec turns the words of a description into a reconfiguration.
func clusterSpec(drs *datacentre.DRS, ha *datacentre.HA, options map[string]string) *types.ClusterConfigSpecEx {
	spec := &types.ClusterConfigSpecEx{}
	if drs != nil {
		spec.DrsConfig = &types.ClusterDrsConfigInfo{Enabled: &drs.Enabled, DefaultVmBehavior: types.DrsBehavior(orText(drs.Behaviour, "fullyAutomated")), VmotionRate: 3}
		options = mergeText(options, drs.Options)
	}
	if len(options) > 0 {
		if spec.DrsConfig == nil {
			spec.DrsConfig = &types.ClusterDrsConfigInfo{}
		}
		spec.DrsConfig.Option = optionValues(options)
	}
	if ha != nil {
		spec.DasConfig = &types.ClusterDasConfigInfo{
			Enabled: &ha.Enabled, AdmissionControlEnabled: &ha.AdmissionControl, FailoverLevel: ha.FailoverLevel,
			AdmissionControlPolicy: &types.ClusterFailoverLevelAdmissionControlPolicy{FailoverLevel: ha.FailoverLevel},
		}
	}
	return spec
}

func mergeText(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func optionValues(options map[string]string) []types.BaseOptionValue {
	var keys []string
	for k := range options {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var out []types.BaseOptionValue
	for _, k := range keys {
		out = append(out, &types.OptionValue{Key: k, Value: options[k]})
	}
	return out
}
