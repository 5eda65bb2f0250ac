package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/judge"
)

const judged = `
foreign: [theirs, archive]
host_defaults: {reboot_seconds: 3600}
clusters:
  - {name: gpu, hosts: [{name: "esx%02d.lab", count: 4}]}
  - {name: archive, hosts: [{name: old01.lab}]}
vms:
  - {name: ours, host: esx01.lab, powered_on: true}
  - {name: theirs, host: esx02.lab, powered_on: true}
`

// lose reboots a host, whatever runs on it, and waits until it is gone.
func (r *running) lose(host string) {
	h := r.host(host).Reference()
	_, err := methods.RebootHost_Task(r.ctx, r.c, &types.RebootHost_Task{This: h, Force: true})
	r.must(err)
	r.await(h, "runtime.connectionState", types.HostSystemConnectionStateNotResponding)
}

// hold makes a record the next generation of the lock of the cluster gpu.
func (r *running) hold(number int, record string) {
	dc, err := object.NewSearchIndex(r.c.Client).FindByInventoryPath(r.ctx, "/dc1/host")
	r.must(err)
	cluster, err := object.NewSearchIndex(r.c.Client).FindByInventoryPath(r.ctx, "/dc1/host/gpu")
	r.must(err)
	name := "dml.vsphere.lock " + cluster.Reference().Value
	root, err := dc.(*object.Folder).CreateFolder(r.ctx, name)
	if err != nil {
		found, err := object.NewSearchIndex(r.c.Client).FindByInventoryPath(r.ctx, "/dc1/host/"+name)
		r.must(err)
		root = found.(*object.Folder)
	}
	claim, err := root.CreateFolder(r.ctx, fmt.Sprintf("claim 1 %d", number))
	r.must(err)
	_, err = claim.CreateFolder(r.ctx, "1of1 "+record)
	r.must(err)
	r.finish(claim.Rename(r.ctx, fmt.Sprint(number)))
}

// held is the record of a run that holds the lock for an hour, as the named process.
func held(run string, pid int) string {
	until := time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05Z")
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	started := "0"
	if fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:])); len(fields) > 19 {
		started = fields[19]
	}
	return fmt.Sprintf("state=held run=%s until=%s pid=%d started=%s", run, until, pid, started)
}

func (r *running) tag(vm string) {
	m := tags.NewManager(r.rest())
	category, err := m.CreateCategory(r.ctx, &tags.Category{Name: "c", Cardinality: "MULTIPLE"})
	r.must(err)
	tag, err := m.CreateTag(r.ctx, &tags.Tag{Name: "t", CategoryID: category})
	r.must(err)
	r.must(m.AttachTag(r.ctx, tag, r.vm(vm)))
}

func TestEachRuleBitesOnlyWhenItIsBroken(t *testing.T) {
	me := os.Getpid()
	cases := map[string]struct {
		act  func(*running)
		want []string // rule and a part of the sentence
	}{
		"one host after another": {func(r *running) {
			r.enterMaintenance("esx03.lab")
			r.finish(r.host("esx03.lab").ExitMaintenanceMode(r.ctx, 0))
			r.enterMaintenance("esx04.lab")
		}, nil},
		"a second host enters": {func(r *running) { r.enterMaintenance("esx03.lab"); r.enterMaintenance("esx04.lab") },
			[]string{judge.HostsOut, "esx04.lab left service while esx03.lab was out of service"}},
		"a host begins to leave beside one of others": {func(r *running) {
			r.control("PATCH", "/hosts/esx03.lab", map[string]any{"maintenance": true}, nil)
			_, err := r.host("esx01.lab").EnterMaintenanceMode(r.ctx, 0, false, nil)
			r.must(err)
		}, []string{judge.HostsOut, "esx01.lab left service while esx03.lab"}},
		"others take two hosts": {func(r *running) {
			for _, name := range []string{"esx03.lab", "esx04.lab"} {
				r.control("PATCH", "/hosts/"+name, map[string]any{"maintenance": true}, nil)
			}
		}, nil},
		"a host with a machine is rebooted": {func(r *running) { r.lose("esx01.lab") },
			[]string{judge.Lost, "esx01.lab lost its connection with ours powered on"}},
		"a host with a machine is disconnected": {func(r *running) {
			r.finish(r.host("esx01.lab").Disconnect(r.ctx))
		}, []string{judge.Lost, "ours powered on"}},
		"an empty host is rebooted": {func(r *running) { r.lose("esx03.lab") }, nil},
		"our machine is powered off and removed": {func(r *running) {
			r.finish(r.vm("ours").PowerOff(r.ctx))
			r.tag("ours")
			r.must(r.vm("ours").Unregister(r.ctx))
		}, nil},
		"their machine is renamed": {func(r *running) {
			r.finish(r.vm("theirs").Rename(r.ctx, "ours2"))
		}, []string{judge.Foreign, "Rename_Task of theirs, and theirs is foreign"}},
		"their machine is tagged": {func(r *running) { r.tag("theirs") },
			[]string{judge.Foreign, "theirs is foreign"}},
		"a host of their cluster enters": {func(r *running) { r.enterMaintenance("old01.lab") },
			[]string{judge.Foreign, "of old01.lab, and archive is foreign"}},
		"the lock changes hands in order": {func(r *running) {
			r.hold(1, held("a", me))
			r.hold(2, held("a", me))
			r.hold(3, "state=free run=a")
			r.hold(4, held("b", 999999999))
			r.hold(5, held("c", me))
		}, nil},
		"the lock is taken from a living run": {func(r *running) {
			r.hold(1, held("a", me))
			r.hold(2, held("b", me))
		}, []string{judge.Lock, "run b took the lock of gpu from run a"}},
		"the lock is freed while a host leaves": {func(r *running) {
			r.hold(1, held("a", me))
			_, err := r.host("esx01.lab").EnterMaintenanceMode(r.ctx, 0, false, nil)
			r.must(err)
			r.hold(2, "state=free run=a")
		}, []string{judge.Lock, "run a freed the lock of gpu while esx01.lab was leaving service"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := launch(t, judged)
			c.act(r)
			var found []judge.Violation
			r.control("GET", "/violations", nil, &found)
			switch {
			case len(c.want) == 0 && len(found) > 0:
				t.Errorf("%v", found)
			case len(c.want) > 0 && (len(found) != 1 || found[0].Rule != c.want[0] ||
				!strings.Contains(found[0].What, c.want[1])):
				t.Errorf("%v, not %v", found, c.want)
			}
		})
	}
}

func TestADescriptionMayAllowMoreHostsOut(t *testing.T) {
	r := launch(t, "hosts_out: 2\n"+judged)

	r.enterMaintenance("esx03.lab")
	r.enterMaintenance("esx04.lab")
	if found := r.vcenter.Judge.Violations(); len(found) > 0 {
		t.Error(found)
	}

	_, err := r.host("esx01.lab").EnterMaintenanceMode(r.ctx, 0, false, nil)
	r.must(err)
	if found := r.vcenter.Judge.Violations(); len(found) != 1 {
		t.Error(found)
	}
}
