package world

import (
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/front"
)

// frontTask is a task whose end is decided outside of the simulated data centre.
type frontTask struct {
	self ref
	end  chan func(*job) (types.AnyType, types.BaseMethodFault)
}

// Task begins a task on an entity for a user; the caller ends it.
func (s *Sim) Task(on ref, method, user string) front.Task {
	ctx := s.contextOf(user)
	t := &frontTask{end: make(chan func(*job) (types.AnyType, types.BaseMethodFault), 1)}
	t.self = s.startFor(ctx, on, s.Name(on), taskName(method), "", func(j *job) (types.AnyType, types.BaseMethodFault) { return (<-t.end)(j) })
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
