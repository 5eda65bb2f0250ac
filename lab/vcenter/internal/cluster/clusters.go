// Package cluster simulates the clusters: DRS, HA, rules, groups, overrides, vSAN.
//
// vcsim: stores rules, groups and overrides, but does not enforce them: no placement by rules, no admission control.
package cluster

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Clusters are the clusters of the data centre, with the state that vcsim does not store.
type Clusters struct {
	sim   *vcsim.Sim
	hosts *esxi.Hosts

	mu     sync.Mutex // never held while a vcsim lock is taken
	states map[vcsim.Ref]State
}

// New returns the set of clusters.
func New(sim *vcsim.Sim, hosts *esxi.Hosts) *Clusters {
	return &Clusters{sim: sim, hosts: hosts, states: map[vcsim.Ref]State{}}
}

// Cluster is one cluster.
type Cluster struct {
	clusters *Clusters
	entity   *simulator.ClusterComputeResource
}

// State is the state of a cluster that vcsim does not store.
type State struct {
	ImageManaged    bool
	ConfigProfile   bool
	VsanResyncBytes int64
	Components      map[string]string // of the image; replaced, never modified in place
	BaseImage       string            // of the image; that of the description if empty
	AddOn           AddOn             // of the image
	ImagePolicy     map[string]any    // what differs from the usual remediation policy
	EULAAccepted    bool              // whether a remediation needs no acceptance
	CheckIssues     []string          // what the check of a remediation finds
}

// AddOn is the vendor add-on of an image.
type AddOn struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Change is a change of a cluster through the control interface; absent fields change nothing.
type Change struct {
	Alarm           *string           `json:"alarm"`
	DRS             *datacentre.DRS   `json:"drs"`
	HA              *datacentre.HA    `json:"ha"`
	DRSOptions      map[string]string `json:"drs_options"`
	VsanResyncBytes *int64            `json:"vsan_resync_bytes"`
	ImageManaged    *bool             `json:"image_managed"`
	ConfigProfile   *bool             `json:"config_profile"`
	ImageComponents map[string]string `json:"image_components"`
	ImagePolicy     map[string]any    `json:"image_policy"`
	EULAAccepted    *bool             `json:"eula_accepted"`
	CheckIssues     []string          `json:"check_issues"`
}

// Report is the state of a cluster in the control interface.
type Report struct {
	Name string `json:"name"`
	MOID string `json:"moid"`
	State
	DRSOptions map[string]string `json:"drs_options"`
}

// Named finds a cluster by its name.
func (s *Clusters) Named(name string) (*Cluster, bool) {
	for _, o := range s.sim.Registry.AllReference("ClusterComputeResource") {
		if s.sim.Name(o.Reference()) == name {
			return &Cluster{clusters: s, entity: o.(*simulator.ClusterComputeResource)}, true
		}
	}
	return nil, false
}

// State returns a copy of a cluster's state.
func (s *Clusters) State(of vcsim.Ref) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[of]
}

// Change changes a cluster's state.
func (s *Clusters) Change(of vcsim.Ref, f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[of]
	f(&state)
	s.states[of] = state
}

// Apply changes the cluster as if another user had changed it. The log of writes does not show it.
func (c *Cluster) Apply(ch Change) error {
	s, ctx := c.clusters, c.clusters.sim.Context()
	if ch.Alarm != nil {
		if err := s.sim.Alarm(ctx, c.entity, *ch.Alarm); err != nil {
			return err
		}
	}
	if ch.DRS != nil || ch.HA != nil || ch.DRSOptions != nil {
		Configure(ctx, c.entity, Spec(ch.DRS, ch.HA, ch.DRSOptions))
	}
	if ch.VsanResyncBytes != nil {
		switchVsanOn(ctx, c.entity)
	}
	if ch.ImageManaged != nil {
		s.SetImageManaged(c.entity.Self, *ch.ImageManaged)
	}
	s.Change(c.entity.Self, func(state *State) {
		if ch.VsanResyncBytes != nil {
			state.VsanResyncBytes = *ch.VsanResyncBytes
		}
		if ch.ImageComponents != nil {
			state.Components = ch.ImageComponents
		}
		if ch.ConfigProfile != nil {
			state.ConfigProfile = *ch.ConfigProfile
		}
		ch.ofRemediation(state)
	})
	return nil
}

// ofRemediation applies the part of a change that concerns the remediation of hosts.
func (ch Change) ofRemediation(state *State) {
	if ch.ImagePolicy != nil {
		state.ImagePolicy = ch.ImagePolicy
	}
	if ch.EULAAccepted != nil {
		state.EULAAccepted = *ch.EULAAccepted
	}
	if ch.CheckIssues != nil {
		state.CheckIssues = ch.CheckIssues
	}
}

// SetImageManaged sets whether an image manages the cluster, for REST and in the cluster's lifecycleManaged property.
// VMware: vSphere API reference, ClusterComputeResource.lifecycleManaged.
func (s *Clusters) SetImageManaged(cluster vcsim.Ref, on bool) {
	s.Change(cluster, func(state *State) { state.ImageManaged = on })
	s.sim.Update(s.sim.Context(), s.sim.Registry.Get(cluster), vcsim.Change("lifecycleManaged", on))
}

// Report returns the current state of the cluster.
func (c *Cluster) Report() Report {
	ctx := c.clusters.sim.Context()
	r := Report{MOID: c.entity.Self.Value, State: c.clusters.State(c.entity.Self), DRSOptions: map[string]string{}}
	ctx.WithLock(c.entity, func() {
		r.Name = c.entity.Name
		for _, o := range c.entity.ConfigurationEx.(*types.ClusterConfigInfoEx).DrsConfig.Option {
			r.DRSOptions[o.GetOptionValue().Key] = fmt.Sprint(o.GetOptionValue().Value)
		}
	})
	return r
}

// MarshalJSON flattens the state into the report.
func (r Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"name": r.Name, "moid": r.MOID, "image_managed": r.ImageManaged, "config_profile": r.ConfigProfile,
		"vsan_resync_bytes": r.VsanResyncBytes, "drs_options": r.DRSOptions,
		"image_components": r.Components, "image_base": r.BaseImage, "image_add_on": r.AddOn,
	})
}
