package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestTimeThatPassesAtOnceIsSeenByVCenterAndHosts(t *testing.T) {
	r := launch(t, "")
	up := r.uptime("esx01.lab")
	r.letPass(48 * time.Hour)
	now, err := methods.GetCurrentTime(r.ctx, r.c)
	r.must(err)
	var clock mo.HostSystem
	r.must(r.c.RetrieveOne(r.ctx, r.host("esx01.lab").Reference(), []string{"configManager.dateTimeSystem"}, &clock))
	at, err := methods.QueryDateTime(r.ctx, r.c,
		&types.QueryDateTime{This: *clock.ConfigManager.DateTimeSystem})
	r.must(err)
	for name, passed := range map[string]time.Duration{"vCenter": time.Until(*now), "host": time.Until(at.Returnval),
		"uptime of the host": r.uptime("esx01.lab") - up} {
		if passed.Round(time.Hour) != 48*time.Hour {
			t.Errorf("%s: %v passed", name, passed)
		}
	}
	if status, _ := r.controlRaw("POST", "/clock", map[string]any{"seconds": -1}); status != http.StatusBadRequest {
		t.Errorf("time went back: %d", status)
	}
}

func (r *running) uptime(host string) time.Duration {
	r.t.Helper()
	res, err := methods.RetrieveHardwareUptime(r.ctx, r.c,
		&types.RetrieveHardwareUptime{This: r.host(host).Reference()})
	r.must(err)
	return time.Duration(res.Returnval) * time.Second
}

func TestTheClockOfTheServerCanBeSet(t *testing.T) {
	r := launch(t, "")
	offset := func() time.Duration {
		now, err := methods.GetCurrentTime(r.ctx, r.c)
		r.must(err)
		return time.Until(*now)
	}
	if got := offset(); got.Abs() > time.Minute {
		t.Fatalf("the clock of the server is %v ahead", got)
	}
	r.control("PUT", "/clock", map[string]any{"offset_seconds": -3600}, nil)
	if got := offset() + time.Hour; got.Abs() > time.Minute {
		t.Errorf("the clock of the server was not set: it is %v away", got)
	}
	task, err := r.host("esx02.lab").EnterMaintenanceMode(r.ctx, 0, false, nil)
	r.must(err)
	r.must(task.Wait(r.ctx))
	r.control("PUT", "/clock", map[string]any{"offset_seconds": 0}, nil)
	var ended mo.Task
	r.must(r.c.RetrieveOne(r.ctx, task.Reference(), []string{"info"}, &ended))
	for name, at := range map[string]time.Time{"queued": ended.Info.QueueTime, "started": *ended.Info.StartTime,
		"completed": *ended.Info.CompleteTime} {
		if got := time.Until(at) + time.Hour; got.Abs() > time.Minute {
			t.Errorf("%s is %v away from the clock of that time", name, got)
		}
	}
}
