package world

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Clusters are the clusters of the data centre and what vcsim does not keep of them.
type Clusters struct {
	sim   *Sim
	hosts *Hosts

	mu     sync.Mutex // never held while a vcsim lock is taken
	states map[ref]ClusterState
}

func newClusters(sim *Sim, hosts *Hosts) *Clusters {
	return &Clusters{sim: sim, hosts: hosts, states: map[ref]ClusterState{}}
}

// Cluster is one cluster.
type Cluster struct {
	clusters *Clusters
	entity   *simulator.ClusterComputeResource
}

// ClusterState is what vcsim does not keep of a cluster.
type ClusterState struct {
	ImageManaged    bool
	ConfigProfile   bool
	VsanResyncBytes int64
	Components      map[string]string // of the image; replaced, never changed in place
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
	ClusterState
	DRSOptions map[string]string `json:"drs_options"`
}

// named finds a cluster by its name.
func (s *Clusters) named(name string) (*Cluster, bool) {
	for _, o := range s.sim.reg.AllReference("ClusterComputeResource") {
		if s.sim.Name(o.Reference()) == name {
			return &Cluster{clusters: s, entity: o.(*simulator.ClusterComputeResource)}, true
		}
	}
	return nil, false
}

// state is a copy of a cluster's state.
func (s *Clusters) state(of ref) ClusterState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[of]
}

// change changes a cluster's state.
func (s *Clusters) change(of ref, f func(*ClusterState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[of]
	f(&state)
	s.states[of] = state
}

// Apply changes the cluster as if somebody else had: nothing is logged as a write.
func (c *Cluster) Apply(ch ClusterChange) error {
	s, ctx := c.clusters, c.clusters.sim.context()
	if ch.Alarm != nil {
		if err := s.sim.alarm(ctx, c.entity, *ch.Alarm); err != nil {
			return err
		}
	}
	if ch.DRS != nil || ch.HA != nil || ch.DRSOptions != nil {
		configure(ctx, c.entity, clusterSpec(ch.DRS, ch.HA, ch.DRSOptions))
	}
	if ch.VsanResyncBytes != nil {
		switchVsanOn(ctx, c.entity)
	}
	if ch.ImageManaged != nil {
		s.setImageManaged(c.entity.Self, *ch.ImageManaged)
	}
	s.change(c.entity.Self, func(state *ClusterState) {
		if ch.VsanResyncBytes != nil {
			state.VsanResyncBytes = *ch.VsanResyncBytes
		}
		if ch.ImageComponents != nil {
			state.Components = ch.ImageComponents
		}
		if ch.ConfigProfile != nil {
			state.ConfigProfile = *ch.ConfigProfile
		}
	})
	return nil
}

// setImageManaged says whether the cluster is managed by an image, over REST and as the cluster's own property.
func (s *Clusters) setImageManaged(cluster ref, on bool) {
	s.change(cluster, func(state *ClusterState) { state.ImageManaged = on })
	s.sim.update(s.sim.context(), s.sim.reg.Get(cluster), change("lifecycleManaged", on))
}

// Report is the cluster's state now.
func (c *Cluster) Report() ClusterReport {
	ctx := c.clusters.sim.context()
	r := ClusterReport{MOID: c.entity.Self.Value, ClusterState: c.clusters.state(c.entity.Self), DRSOptions: map[string]string{}}
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
