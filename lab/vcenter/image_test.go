package main

import (
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vapi/esx/settings/clusters"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/front"
)

func (r *running) cluster() types.ManagedObjectReference {
	r.t.Helper()
	c, err := find.NewFinder(r.c.Client).ClusterComputeResource(r.ctx, "/dc1/host/gpu")
	r.must(err)
	return c.Reference()
}

func (r *running) rest() *rest.Client {
	r.t.Helper()
	rc := rest.NewClient(r.c.Client)
	r.must(rc.Login(r.ctx, r.url().User))
	return rc
}

func TestImageOfACluster(t *testing.T) {
	r := launch(t, "")
	id := r.cluster()
	m := clusters.NewManager(r.rest())
	info, err := m.GetSoftwareManagement(id.Value)
	r.must(err)
	if info.Enabled {
		t.Fatal("managed by an image at the start")
	}
	if _, err := m.CreateSoftwareDraft(id.Value); err == nil {
		t.Error("a draft without an image was accepted")
	}
	r.control("PATCH", "/clusters/gpu", map[string]any{"image_managed": true}, nil)
	var c mo.ClusterComputeResource
	r.must(r.c.RetrieveOne(r.ctx, id, []string{"lifecycleManaged"}, &c))
	if !*c.LifecycleManaged {
		t.Error("the cluster does not say so")
	}
	draft, err := m.CreateSoftwareDraft(id.Value)
	r.must(err)
	if _, err := m.CreateSoftwareDraft(id.Value); err == nil {
		t.Error("a second draft was accepted")
	}
	r.must(m.UpdateSoftwareDraftComponents(id.Value, draft,
		clusters.SoftwareComponentsUpdateSpec{
			ComponentsToSet: map[string]string{"NVD-AIE-800": "550.90.05-1OEM.800.1.0.20613240"}}))
	_, err = m.CommitSoftwareDraft(id.Value, draft, clusters.SettingsClustersSoftwareDraftsCommitSpec{})
	r.must(err)
	var report map[string]any
	r.control("GET", "/clusters/gpu", nil, &report)
	if got := report["image_components"].(map[string]any)["NVD-AIE-800"]; got != "550.90.05-1OEM.800.1.0.20613240" {
		t.Errorf("the image has %v", got)
	}
	var writes []front.Write
	r.control("GET", "/writes", nil, &writes)
	if len(writes) != 5 || writes[4].User != testUser {
		t.Errorf("writes: %+v", writes)
	}
}

func TestDRSAndHAAreKept(t *testing.T) {
	r := launch(t, "")
	spec := &types.ClusterConfigSpecEx{
		DrsConfig: &types.ClusterDrsConfigInfo{
			Option:      []types.BaseOptionValue{&types.OptionValue{Key: "VgpuMMAutomationTimeoutSecs", Value: "-1"}},
			VmotionRate: 2},
		DasConfig: &types.ClusterDasConfigInfo{FailoverLevel: 2},
	}
	_, err := methods.ReconfigureComputeResource_Task(r.ctx, r.c,
		&types.ReconfigureComputeResource_Task{This: r.cluster(), Spec: spec, Modify: true})
	r.must(err)
	r.awaitTrue("the options are kept", func() bool {
		var c mo.ClusterComputeResource
		r.must(r.c.RetrieveOne(r.ctx, r.cluster(), []string{"configurationEx"}, &c))
		config := c.ConfigurationEx.(*types.ClusterConfigInfoEx)
		return len(config.DrsConfig.Option) == 1 && config.DrsConfig.VmotionRate == 2 &&
			config.DasConfig.FailoverLevel == 2 && *config.DrsConfig.Enabled
	})
}

func TestConfigurationProfileShows(t *testing.T) {
	r := launch(t, "")
	read := func() any {
		res, err := methods.RetrieveProperties(r.ctx, r.c,
			&types.RetrieveProperties{This: r.c.ServiceContent.PropertyCollector, SpecSet: []types.PropertyFilterSpec{{
				PropSet: []types.PropertySpec{
					{Type: "ClusterComputeResource", PathSet: []string{"name", "configManagerEnabled"}}},
				ObjectSet: []types.ObjectSpec{{Obj: r.cluster()}}}}})
		r.must(err)
		for _, p := range res.Returnval[0].PropSet {
			if p.Name == "configManagerEnabled" {
				return p.Val
			}
		}
		return nil
	}
	if read() != false {
		t.Errorf("at the start: %v", read())
	}
	r.control("PATCH", "/clusters/gpu", map[string]any{"config_profile": true}, nil)
	if read() != true {
		t.Errorf("then: %v", read())
	}
}
