package world

import (
	"context"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/front"
)

// frontTask is a task whose end is decided outside of the simulated data centre.
type frontTask struct {
	world *World
	self  ref
	end   chan func(*job) (types.AnyType, types.BaseMethodFault)
}

// Task begins a task on an entity for a user; the caller ends it.
func (w *World) Task(on ref, method, user string) front.Task {
	ctx := w.contextOf(user)
	t := &frontTask{world: w, end: make(chan func(*job) (types.AnyType, types.BaseMethodFault), 1)}
	name := w.Name(on)
	goMethod := goName(method)
	goMethod = string(lower(goMethod[0])) + goMethod[1:]
	t.self = w.startFor(ctx, on, name, goMethod, "", func(j *job) (types.AnyType, types.BaseMethodFault) { return (<-t.end)(j) })
	return t
}

// contextOf acts for a user.
func (w *World) contextOf(user string) *simulator.Context {
	ctx := w.context()
	session := *ctx.Session
	session.UserName = user
	ctx.Session = &session
	return ctx
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

// Reference is the task's reference.
func (t *frontTask) Reference() ref { return t.self }

// Succeed ends the task well, without a result.
func (t *frontTask) Succeed() {
	t.end <- func(*job) (types.AnyType, types.BaseMethodFault) { return nil, nil }
}

// Fail ends the task in error.
func (t *frontTask) Fail(fault types.BaseMethodFault, words string) {
	t.end <- func(j *job) (types.AnyType, types.BaseMethodFault) {
		j.words = words
		return nil, fault
	}
}

// Follow ends the task as another one ends.
func (t *frontTask) Follow(other ref) {
	t.end <- func(j *job) (types.AnyType, types.BaseMethodFault) { return j.follow(other) }
}

// follow waits for another task and returns what it returned.
func (j *job) follow(other ref) (types.AnyType, types.BaseMethodFault) {
	task, ok := j.world.reg.Get(other).(*simulator.Task)
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

// EndSession makes vcsim forget a session.
func (w *World) EndSession(key string) {
	ctx := w.context()
	ctx.Context = context.Background()
	w.reg.SessionManager().TerminateSession(ctx, &types.TerminateSession{SessionId: []string{key}})
}

// NeverReturns lets the next reboot of a host be its last.
func (w *World) NeverReturns(host ref) {
	if h := w.host(host); h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.moods.neverReturns = true
	}
}
