package world

import (
	"context"

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
	t.self = w.startFor(ctx, on, w.Name(on), taskName(method), "", func(j *job) (types.AnyType, types.BaseMethodFault) { return (<-t.end)(j) })
	return t
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
