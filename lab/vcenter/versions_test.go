package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// released starts the default lab with a release of vSphere.
func released(t *testing.T, release string) *running {
	t.Helper()
	return launch(t, strings.Replace(string(labDescription(t)), "version: 8.0.3\n", "release: "+release+"\n", 1))
}

func TestARefusalOfWhatAVersionDoesNotKnow(t *testing.T) {
	// metroFtEnabled of machines, networkBootMode of clusters, DirectPathProfileManagerList
	known := map[string][3]bool{
		"8.0 U2": {}, "8.0 U3": {true, false, false}, "9.0": {true, true, true}, "9.1": {true, true, true},
	}
	for release, knows := range known {
		t.Run(release, func(t *testing.T) {
			r := released(t, release)
			var vm mo.VirtualMachine
			err := r.c.RetrieveOne(r.ctx, r.vm("debian-12").Reference(), []string{"config.metroFtEnabled"}, &vm)
			if _, refused := faultOf(err).(types.InvalidProperty); refused == knows[0] || (err == nil) != knows[0] {
				t.Errorf("config.metroFtEnabled: %v", err)
			}
			err = r.readRaw("ClusterComputeResource", "networkBootMode")
			if _, refused := faultOf(err).(types.InvalidProperty); refused == knows[1] || (err == nil) != knows[1] {
				t.Errorf("networkBootMode: %v", err)
			}
			const kind = "DirectPathProfileManager"
			manager := types.ManagedObjectReference{Type: kind, Value: kind}
			list := &types.DirectPathProfileManagerList{This: manager}
			_, err = methods.DirectPathProfileManagerList(r.ctx, r.c, list)
			if _, refused := faultOf(err).(types.InvalidRequest); refused == knows[2] {
				t.Errorf("DirectPathProfileManagerList: %v", err)
			}
		})
	}
}

// readRaw reads a property, also one that govmomi does not know.
func (r *running) readRaw(kind, path string) error {
	hosts := r.hostProperties("esx01.lab", "parent")
	_, err := methods.RetrievePropertiesEx(r.ctx, r.c, &types.RetrievePropertiesEx{
		This: r.c.ServiceContent.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{{
			PropSet:   []types.PropertySpec{{Type: kind, PathSet: []string{path}}},
			ObjectSet: []types.ObjectSpec{{Obj: *hosts.Parent}}}}})
	return err
}

func TestAServerSaysNothingNewerThanItself(t *testing.T) {
	says := map[string]bool{"8.0 U2": false, "8.0 U3": true}
	for release, wants := range says {
		t.Run(release, func(t *testing.T) {
			h := released(t, release).hostProperties("esx01.lab", "config")
			if len(h.Config.GraphicsInfo) == 0 {
				t.Fatal("the host shows no GPU")
			}
			if got := h.Config.GraphicsInfo[0].VgpuMode != ""; got != wants {
				t.Errorf("vgpuMode is shown: %v", got)
			}
		})
	}
}

func TestAVersionNamesThoseBeforeIt(t *testing.T) {
	r := released(t, "8.0 U2")
	if got := r.c.ServiceContent.About.ApiVersion; got != "8.0.2.0" {
		t.Errorf("API version %s", got)
	}
	u := r.url()
	u.Path, u.User = "/sdk/vimServiceVersions.xml", nil
	answer, err := r.c.Client.Client.Get(u.String())
	r.must(err)
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	r.must(err)
	text := string(content)
	for part, wants := range map[string]bool{
		"<version>8.0.2.0</version><priorVersions><version>8.0.1.0</version>": true,
		"<version>7.0.2.0</version>":                                          true,
		"8.0.3.0":                                                             false,
		"9.0.0.0":                                                             false,
	} {
		if strings.Contains(text, part) != wants {
			t.Errorf("%s: %v in %s", part, !wants, text)
		}
	}
}

func TestPartialUpdatesNameTheParts(t *testing.T) {
	r := launch(t, "")
	host := r.host("esx01.lab")
	for _, partial := range []bool{true, false} {
		collector, err := methods.CreatePropertyCollector(r.ctx, r.c,
			&types.CreatePropertyCollector{This: r.c.ServiceContent.PropertyCollector})
		r.must(err)
		_, err = methods.CreateFilter(r.ctx, r.c, &types.CreateFilter{
			This: collector.Returnval, PartialUpdates: partial,
			Spec: types.PropertyFilterSpec{
				PropSet:   []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"config.service"}}},
				ObjectSet: []types.ObjectSpec{{Obj: host.Reference()}}}})
		r.must(err)
		first, err := methods.WaitForUpdatesEx(r.ctx, r.c, &types.WaitForUpdatesEx{This: collector.Returnval})
		r.must(err)
		r.flip(host, partial)
		seconds := int32(10)
		next, err := methods.WaitForUpdatesEx(r.ctx, r.c, &types.WaitForUpdatesEx{This: collector.Returnval,
			Version: first.Returnval.Version, Options: &types.WaitOptions{MaxWaitSeconds: &seconds}})
		r.must(err)
		var names []string
		for _, c := range next.Returnval.FilterSet[0].ObjectSet[0].ChangeSet {
			names = append(names, c.Name)
		}
		want := []string{"config.service"}
		if partial {
			want = []string{`config.service.service["ntpd"].running`}
		}
		if !slices.Equal(names, want) {
			t.Errorf("partial %v: %v", partial, names)
		}
	}
}

// flip stops or starts a service.
func (r *running) flip(host *object.HostSystem, stop bool) {
	r.t.Helper()
	system, err := host.ConfigManager().ServiceSystem(r.ctx)
	r.must(err)
	if stop {
		r.must(system.Stop(r.ctx, "ntpd"))
		return
	}
	r.must(system.Start(r.ctx, "ntpd"))
}

func TestNamesOfFoldersHaveAtMost80Letters(t *testing.T) {
	r := launch(t, "")
	root := object.NewFolder(r.c.Client, r.c.ServiceContent.RootFolder)
	made, err := root.CreateFolder(r.ctx, strings.Repeat("é", 80))
	r.must(err)
	if _, err := root.CreateFolder(r.ctx, strings.Repeat("x", 81)); err == nil {
		t.Error("a name of 81 letters was taken")
	}
	task, err := made.Rename(r.ctx, strings.Repeat("y", 81))
	r.must(err)
	if _, named := faultOf(task.Wait(r.ctx)).(*types.InvalidName); !named {
		t.Error("a folder got a name of 81 letters")
	}
}

func TestOthersMoveAndRemoveMachines(t *testing.T) {
	r := launch(t, string(labDescription(t))+"  - {name: w1, host: esx01.lab, powered_on: true}\n")
	r.control(http.MethodPost, "/vms/w1/drs", map[string]any{"host": "esx02.lab"}, nil)
	r.awaitTrue("DRS has moved it", func() bool { return r.hostOf("w1") == "esx02.lab" })
	var vm mo.VirtualMachine
	r.must(r.c.RetrieveOne(r.ctx, r.vm("w1").Reference(), []string{"recentTask"}, &vm))
	var task mo.Task
	r.must(r.c.RetrieveOne(r.ctx, vm.RecentTask[len(vm.RecentTask)-1], []string{"info"}, &task))
	if task.Info.DescriptionId != "Drm.ExecuteVMotionLRO" {
		t.Errorf("the task of DRS is called %s", task.Info.DescriptionId)
	}
	gone := r.vm("w1").Reference()
	r.control(http.MethodPost, "/faults",
		map[string]any{"method": "RetrievePropertiesEx", "kind": "vanish", "machine": "w1"}, nil)
	err := r.c.RetrieveOne(r.ctx, gone, []string{"name"}, &vm)
	if _, lost := faultOf(err).(types.ManagedObjectNotFound); !lost {
		t.Errorf("a machine that vanished: %v", err)
	}
}

func (r *running) hostOf(machine string) string {
	var report struct {
		Host string `json:"host"`
	}
	r.control(http.MethodGet, "/vms/"+machine, nil, &report)
	return report.Host
}

// A client of 8.0 gets answers of 8.0 from a vCenter 9.1.
func TestAnOlderClientGetsNoNewerProperties(t *testing.T) {
	r := launch(t, "release: 9.1\n"+vgpuHosts)
	for version, has := range map[string]bool{"8.0.3.0": false, "9.1.0.0": true} {
		c := *r.c.Client
		c.Version = version
		content, err := methods.GetServiceContent(r.ctx, &c)
		r.must(err)
		if (content.DirectPathProfileManager != nil) != has {
			t.Errorf("%s: the manager is %v", version, content.DirectPathProfileManager)
		}
	}
}
