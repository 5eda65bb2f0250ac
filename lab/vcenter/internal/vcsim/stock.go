package vcsim

import (
	"reflect"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// Poll is the interval at which a waiting task checks again.
const Poll = 50 * time.Millisecond

// Follow waits for another task and returns its result.
func (j *Job) Follow(other Ref) (any, Fault) {
	task, ok := j.sim.Registry.Get(other).(*simulator.Task)
	if !ok {
		return nil, &types.ManagedObjectNotFound{Obj: other}
	}
	info := j.sim.await(task, func(now types.TaskInfo) {
		if now.Progress > 0 {
			j.Progress(now.Progress)
		}
	})
	if info.Error != nil {
		j.Words = info.Error.LocalizedMessage
		return nil, info.Error.Fault
	}
	return info.Result, nil
}

// ForwardTask runs a method of vcsim that starts a task, and waits for the end of that task.
func (j *Job) ForwardTask(of mo.Reference, call func(*simulator.Context) soap.HasFault) (any, Fault) {
	inner := Detached(j.Ctx)
	var started Ref
	inner.WithLock(of, func() {
		started = TaskOf(call(inner))
	})
	info := j.sim.await(j.sim.Registry.Get(started).(*simulator.Task), nil)
	if info.Error != nil {
		return nil, info.Error.Fault
	}
	return info.Result, nil
}

// TaskOf returns the task that a method of vcsim has started.
func TaskOf(body soap.HasFault) Ref {
	return reflect.ValueOf(body).Elem().FieldByName("Res").Elem().FieldByName("Returnval").Interface().(Ref)
}
