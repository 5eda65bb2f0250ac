package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/front"
)

func (r *running) fault(rule map[string]any) {
	r.t.Helper()
	r.control("POST", "/faults", rule, nil)
}

func (r *running) setOptions(host, options string) error {
	_, err := methods.UpdateModuleOptionString(r.ctx, r.c,
		&types.UpdateModuleOptionString{This: r.moduleSystem(host), Name: "nmlx5_core", Options: options})
	return err
}

func (r *running) configured(host string) string {
	r.t.Helper()
	var report esxi.Report
	r.control("GET", "/hosts/"+host, nil, &report)
	return report.ModulesStored["nmlx5_core"]
}

func TestFaultMeetsOneHostSkipsAndWearsOff(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "name": "esx01.lab", "skip": 1, "kind": "fault",
		"fault": "HostConnectFault", "message": "No route."})
	r.must(r.setOptions("esx02.lab", "a=1"))
	r.must(r.setOptions("esx01.lab", "a=1"))
	err := r.setOptions("esx01.lab", "a=2")
	if _, ok := faultOf(err).(types.HostConnectFault); !ok || !strings.Contains(err.Error(), "No route.") {
		t.Errorf("second call: %v", err)
	}
	r.must(r.setOptions("esx01.lab", "a=3"))
}

func TestMissingPrivilegeNamesObjectAndPrivilege(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "fault", "fault": "NoPermission",
		"properties": map[string]any{"privilegeId": "Host.Config.Settings"}})
	f, ok := faultOf(r.setOptions("esx01.lab", "a=1")).(types.NoPermission)
	if !ok || f.PrivilegeId != "Host.Config.Settings" || *f.Object != r.moduleSystem("esx01.lab") {
		t.Errorf("fault: %+v", f)
	}
}

func TestTaskThatFails(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "EnterMaintenanceMode_Task", "kind": "task_fails", "fault": "InvalidState",
		"message": "Not now."})
	h := r.host("esx01.lab")
	task, err := h.EnterMaintenanceMode(r.ctx, 0, false, nil)
	r.must(err)
	err = task.Wait(r.ctx)
	if _, ok := faultOf(err).(*types.InvalidState); !ok || err.Error() != "Not now." {
		t.Errorf("task: %v", err)
	}
	if r.hostProperties("esx01.lab", "runtime").Runtime.InMaintenanceMode {
		t.Error("the failed task changed the host")
	}
}

func TestDroppedConnectionBeforeAndAfter(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "drop"})
	if err := r.setOptions("esx01.lab", "a=1"); err == nil {
		t.Error("an answer came")
	}
	if got := r.configured("esx01.lab"); got != "" {
		t.Errorf("dropped before: kept %q", got)
	}
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "drop", "after": true})
	if err := r.setOptions("esx01.lab", "a=1"); err == nil {
		t.Error("an answer came")
	}
	if got := r.configured("esx01.lab"); got != "a=1" {
		t.Errorf("dropped after: kept %q", got)
	}
	// The client sees the end of the connection before the simulator has logged it.
	r.awaitTrue("two dropped writes in the log", func() bool {
		var writes []front.Write
		r.control("GET", "/writes", nil, &writes)
		return len(writes) == 2 && writes[0].Result == "dropped" && writes[1].Result == "dropped"
	})
}

func TestHalfAnAnswerComesAfterTheCallTookEffect(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "half"})
	if err := r.setOptions("esx01.lab", "a=1"); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("half an answer: %v", err)
	}
	if got := r.configured("esx01.lab"); got != "a=1" {
		t.Errorf("kept %q", got)
	}
}

func TestAStatusOfTheProxyAndSilenceTakeNoEffect(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "status"})
	if err := r.setOptions("esx01.lab", "a=1"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("status: %v", err)
	}
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "silent"})
	ctx, cancel := context.WithTimeout(r.ctx, 200*time.Millisecond)
	defer cancel()
	_, err := methods.UpdateModuleOptionString(ctx, r.c,
		&types.UpdateModuleOptionString{This: r.moduleSystem("esx01.lab"), Name: "nmlx5_core", Options: "a=1"})
	if ctx.Err() == nil {
		t.Errorf("silence: %v", err)
	}
	if got := r.configured("esx01.lab"); got != "" {
		t.Errorf("kept %q", got)
	}
}

func TestExpiredSessionCanLogInAgain(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "UpdateModuleOptionString", "kind": "expire_session"})
	if _, ok := faultOf(r.setOptions("esx01.lab", "a=1")).(types.NotAuthenticated); !ok {
		t.Error("the session lives")
	}
	_, err := methods.QueryModules(r.ctx, r.c, &types.QueryModules{})
	if _, ok := faultOf(err).(types.NotAuthenticated); !ok {
		t.Errorf("a later call: %v", err)
	}
	r.must(r.c.Login(r.ctx, r.url().User))
	r.must(r.setOptions("esx01.lab", "a=1"))
}

func TestReadsNeedASession(t *testing.T) {
	r := launch(t, "")
	ref := r.host("esx01.lab").Reference()
	r.must(r.c.Logout(r.ctx))
	_, err := methods.RetrieveProperties(r.ctx, r.c,
		&types.RetrieveProperties{This: r.c.ServiceContent.PropertyCollector, SpecSet: []types.PropertyFilterSpec{{
			PropSet:   []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"name"}}},
			ObjectSet: []types.ObjectSpec{{Obj: ref}}}}})
	if _, ok := faultOf(err).(types.NotAuthenticated); !ok {
		t.Errorf("a read after logging out: %v", err)
	}
}

func TestDeafHostAnswersAndKeepsNothing(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "*", "type": "HostKernelModuleSystem", "count": front.Forever, "kind": "deaf"})
	r.fault(map[string]any{"method": "esxcli system module parameters set", "name": "esx01.lab", "kind": "deaf"})
	r.fault(map[string]any{"method": "EnterMaintenanceMode_Task", "kind": "deaf"})
	r.must(r.setOptions("esx01.lab", "a=1"))
	if _, fault := r.esxcli("esx01.lab", "system module parameters set", "module", "nmlx5_core", "parameterstring",
		"RSS=4"); fault != "" {
		t.Error(fault)
	}
	r.finish(r.host("esx01.lab").EnterMaintenanceMode(r.ctx, 0, false, nil))
	if got := r.configured("esx01.lab"); got != "" {
		t.Errorf("kept %q", got)
	}
	if r.hostProperties("esx01.lab", "runtime").Runtime.InMaintenanceMode {
		t.Error("in maintenance mode")
	}
}

func TestSlowTaskBeginsLaterAndEndsWell(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "EnterMaintenanceMode_Task", "kind": "slow", "seconds": 1800})
	task, err := r.host("esx01.lab").EnterMaintenanceMode(r.ctx, 0, false, nil)
	r.must(err)
	if r.hostProperties("esx01.lab", "runtime").Runtime.InMaintenanceMode {
		t.Error("in maintenance mode at once")
	}
	r.letPass(30 * time.Minute)
	r.must(task.Wait(r.ctx))
	if !r.hostProperties("esx01.lab", "runtime").Runtime.InMaintenanceMode {
		t.Error("not in maintenance mode")
	}
}

func TestSlowTaskThatFailsKeepsItsFault(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "ExitMaintenanceMode_Task", "kind": "slow", "seconds": 0.1})
	task, err := r.host("esx01.lab").ExitMaintenanceMode(r.ctx, 0)
	r.must(err)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.InvalidState); !ok {
		t.Errorf("task: %v", task.Wait(r.ctx))
	}
}

func TestRebootThatNeverReturns(t *testing.T) {
	r := launch(t, "")
	r.fault(map[string]any{"method": "RebootHost_Task", "kind": "never_returns"})
	h := r.host("esx01.lab")
	res, err := methods.RebootHost_Task(r.ctx, r.c, &types.RebootHost_Task{This: h.Reference(), Force: true})
	r.must(err)
	r.finish(object.NewTask(r.c.Client, res.Returnval), nil)
	r.await(h.Reference(), "runtime.connectionState", types.HostSystemConnectionStateNotResponding)
	r.letPass(24 * time.Hour)
	if s := r.hostProperties("esx01.lab",
		"runtime").Runtime.ConnectionState; s != types.HostSystemConnectionStateNotResponding {
		t.Errorf("the host is %s", s)
	}
	r.control("PATCH", "/hosts/esx01.lab", map[string]any{"connection": "connected"}, nil)
	r.await(h.Reference(), "runtime.connectionState", types.HostSystemConnectionStateConnected)
}

func TestMisspeltFaultsAreRefused(t *testing.T) {
	r := launch(t, "")
	for _, bad := range []map[string]any{
		{"method": "X", "kind": "nope"}, {"kind": "drop"}, {"method": "X", "kind": "fault", "fault": "Nope"},
		{"method": "X", "kind": "fault", "fault": "HostSystem"}, {"method": "X", "kind": "drop", "cuont": 2},
	} {
		if status, text := r.controlRaw("POST", "/faults", bad); status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", bad, status, text)
		}
	}
}

func TestMoodsOfHostAndCluster(t *testing.T) {
	r := launch(t, "")
	r.control("PATCH", "/hosts/esx01.lab",
		map[string]any{"alarm": "red", "reboot_required": true, "quarantine": true, "host_profile": "gold"}, nil)
	h := r.hostProperties("esx01.lab", "triggeredAlarmState", "overallStatus", "summary.rebootRequired", "runtime",
		"parent")
	if len(h.TriggeredAlarmState) != 1 || h.TriggeredAlarmState[0].OverallStatus != "red" ||
		h.OverallStatus != "red" || !h.Summary.RebootRequired || !*h.Runtime.InQuarantineMode {
		t.Errorf("host: %+v", h)
	}
	found, err := methods.FindAssociatedProfile(r.ctx, r.c,
		&types.FindAssociatedProfile{This: *r.c.ServiceContent.HostProfileManager,
			Entity: r.host("esx01.lab").Reference()})
	r.must(err)
	if len(found.Returnval) != 1 {
		t.Errorf("profiles: %v", found.Returnval)
	}
	r.control("PATCH", "/hosts/esx01.lab", map[string]any{"alarm": "none"}, nil)
	if h := r.hostProperties("esx01.lab", "triggeredAlarmState"); len(h.TriggeredAlarmState) != 0 {
		t.Errorf("alarm left: %+v", h.TriggeredAlarmState)
	}
	r.control("PATCH", "/clusters/gpu",
		map[string]any{"alarm": "yellow", "vsan_resync_bytes": 42, "drs_options": map[string]string{"X": "1"}}, nil)
	var c map[string]any
	r.control("GET", "/clusters/gpu", nil, &c)
	if c["vsan_resync_bytes"] != 42.0 || c["drs_options"].(map[string]any)["X"] != "1" {
		t.Errorf("cluster: %v", c)
	}
}

func TestAbandonedWaitEnds(t *testing.T) {
	r := launch(t, "")
	pc := r.c.ServiceContent.PropertyCollector
	_, err := methods.CreateFilter(r.ctx, r.c, &types.CreateFilter{This: pc, Spec: types.PropertyFilterSpec{
		PropSet:   []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"runtime.inMaintenanceMode"}}},
		ObjectSet: []types.ObjectSpec{{Obj: r.host("esx01.lab").Reference()}}}})
	r.must(err)
	first, err := methods.WaitForUpdatesEx(r.ctx, r.c, &types.WaitForUpdatesEx{This: pc})
	r.must(err)
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := methods.WaitForUpdatesEx(ctx, r.c,
			&types.WaitForUpdatesEx{This: pc, Version: first.Returnval.Version})
		ended <- err
	}()
	calls := func() map[string]int {
		var calls map[string]int
		r.control("GET", "/calls", nil, &calls)
		return calls
	}
	r.awaitTrue("the client waits", func() bool { return calls()["WaitForUpdatesEx"] == 2 })
	cancel()
	if <-ended == nil {
		t.Error("the wait ended well")
	}
	r.awaitTrue("the server gives up too", func() bool { return calls()["abandoned WaitForUpdatesEx"] == 1 })
}
