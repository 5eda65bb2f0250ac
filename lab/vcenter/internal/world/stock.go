package world

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// poll is how often a waiting task looks again.
const poll = 50 * time.Millisecond

// follow waits for another task and returns what it returned.
func (j *job) follow(other ref) (types.AnyType, types.BaseMethodFault) {
	task, ok := j.sim.reg.Get(other).(*simulator.Task)
	if !ok {
		return nil, &types.ManagedObjectNotFound{Obj: other}
	}
	for {
		var info types.TaskInfo
		j.ctx.WithLock(task, func() { info = task.Info })
		switch info.State {
		case types.TaskInfoStateSuccess:
			return info.Result, nil
		case types.TaskInfoStateError:
			j.words = info.Error.LocalizedMessage
			return nil, info.Error.Fault
		}
		if info.Progress > 0 {
			j.progress(info.Progress)
		}
		time.Sleep(poll)
	}
}

// stockTask runs a method of vcsim that makes a task, and waits for its end.
func (j *job) stockTask(of mo.Reference, call func(*simulator.Context) soap.HasFault) (types.AnyType, types.BaseMethodFault) {
	inner := detached(j.ctx)
	var started ref
	inner.WithLock(of, func() {
		switch body := call(inner).(type) {
		case *methods.CreateDVS_TaskBody:
			started = body.Res.Returnval
		case *methods.Destroy_TaskBody:
			started = body.Res.Returnval
		}
	})
	t := j.sim.reg.Get(started).(*simulator.Task)
	t.Wait()
	if t.Info.Error != nil {
		return nil, t.Info.Error.Fault
	}
	return t.Info.Result, nil
}
