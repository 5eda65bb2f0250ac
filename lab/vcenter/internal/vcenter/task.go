package vcenter

import (
	"dml.vsphere/lab/vcenter/internal/front"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// frontTask is a task that the front ends.
type frontTask struct {
	self vcsim.Ref
	end  chan func(*vcsim.Job) (any, vcsim.Fault)
}

// Task starts a task on an entity for a user; the caller ends it.
func (w *Server) Task(on vcsim.Ref, method, user string) front.Task {
	ctx := w.sim.ContextOf(user)
	t := &frontTask{end: make(chan func(*vcsim.Job) (any, vcsim.Fault), 1)}
	t.self = w.sim.StartFor(ctx, on, w.sim.Name(on), vcsim.TaskName(method), "",
		func(j *vcsim.Job) (any, vcsim.Fault) { return (<-t.end)(j) })
	return t
}

// Reference returns the task's reference.
func (t *frontTask) Reference() vcsim.Ref { return t.self }

// Succeed ends the task with success, without a result.
func (t *frontTask) Succeed() {
	t.end <- func(*vcsim.Job) (any, vcsim.Fault) { return nil, nil }
}

// Fail ends the task with an error.
func (t *frontTask) Fail(fault vcsim.Fault, words string) {
	t.end <- func(j *vcsim.Job) (any, vcsim.Fault) {
		j.Words = words
		return nil, fault
	}
}

// Follow ends the task with the result of another one.
func (t *frontTask) Follow(other vcsim.Ref) {
	t.end <- func(j *vcsim.Job) (any, vcsim.Fault) { return j.Follow(other) }
}
