package main

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
)

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
