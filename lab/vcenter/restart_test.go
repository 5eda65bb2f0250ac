package main

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestRestartEndsSessionsAndTasksAndKeepsTheInventory(t *testing.T) {
	r := launch(t, "")
	task, err := r.host("esx02.lab").EnterMaintenanceMode(r.ctx, 0, false, nil)
	r.must(err)
	r.must(task.Wait(r.ctx))
	modules := r.moduleSystem("esx01.lab")
	set := func(options string) error {
		_, err := methods.UpdateModuleOptionString(r.ctx, r.c,
			&types.UpdateModuleOptionString{This: modules, Name: "nmlx5_core", Options: options})
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.control("POST", "/restart", map[string]any{"seconds": 0.5}, nil)
	}()
	begin := time.Now()
	for set("a=1") == nil {
		if time.Since(begin) > deadline {
			t.Fatal("the server does not go away")
		}
	}
	<-ended
	if _, ok := faultOf(set("a=1")).(types.NotAuthenticated); !ok {
		t.Error("the session outlives the server")
	}
	r.c = r.client()
	var gone mo.Task
	lost := r.c.RetrieveOne(r.ctx, task.Reference(), []string{"info"}, &gone)
	if _, ok := faultOf(lost).(types.ManagedObjectNotFound); !ok {
		t.Errorf("the task outlives the server: %v", lost)
	}
	r.must(set("a=2"))
	if r.configured("esx01.lab") != "a=2" {
		t.Error("the host does not take settings after the restart")
	}
}
