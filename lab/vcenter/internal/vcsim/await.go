package vcsim

import (
	"errors"
	"sync"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// changes notifies callers that wait for a task about its changes.
type changes struct {
	mu      sync.Mutex // never held while a vcsim lock is taken
	waiting map[Ref]chan struct{}
}

// next returns a channel that is closed at the next change of a task.
func (c *changes) next(task Ref) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[task] == nil {
		c.waiting[task] = make(chan struct{})
	}
	return c.waiting[task]
}

// Changed wakes callers that wait for a task.
func (s *Sim) Changed(task Ref) {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	if told, ok := s.tasks.waiting[task]; ok {
		close(told)
		delete(s.tasks.waiting, task)
	}
}

// await waits for the end of a task, and calls see, if set, at each change before.
// Ours: vcsim's PropertyCollectors and task waits poll every 20 ms, which would take most of the start time of a
// large data centre.
func (s *Sim) await(task *simulator.Task, see func(types.TaskInfo)) types.TaskInfo {
	ctx := s.Context()
	for {
		changed := s.tasks.next(task.Self)
		var info types.TaskInfo
		s.Registry.WithLock(ctx, task, func() { info = task.Info })
		switch info.State {
		case types.TaskInfoStateSuccess, types.TaskInfoStateError:
			s.Changed(task.Self) // otherwise the channel would never be removed
			return info
		}
		if see != nil {
			see(info)
		}
		<-changed
	}
}

// Result waits for a task that the simulator started with its internal client.
func (s *Sim) Result(started *object.Task, err error) (types.AnyType, error) {
	if err != nil {
		return nil, err
	}
	info := s.await(s.Registry.Get(started.Reference()).(*simulator.Task), nil)
	if info.Error != nil {
		return nil, errors.New(info.Error.LocalizedMessage)
	}
	return info.Result, nil
}
