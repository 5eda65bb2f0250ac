package vcsim

import (
	"errors"
	"sync"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// changes tells whoever waits for a task that it changed.
type changes struct {
	mu      sync.Mutex // never held while a vcsim lock is taken
	waiting map[Ref]chan struct{}
}

// next is closed at the next change of a task.
func (c *changes) next(task Ref) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[task] == nil {
		c.waiting[task] = make(chan struct{})
	}
	return c.waiting[task]
}

// Changed wakes those who wait for a task.
func (s *Sim) Changed(task Ref) {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	if told, ok := s.tasks.waiting[task]; ok {
		close(told)
		delete(s.tasks.waiting, task)
	}
}

// await waits for the end of a task; whoever wants to sees it at each change before.
// Ours: a PropertyCollector of vcsim looks every 20 ms, and so do its own waits for tasks; that makes most of the time
// in which a large data centre starts.
func (s *Sim) await(task *simulator.Task, see func(types.TaskInfo)) types.TaskInfo {
	ctx := s.Context()
	for {
		changed := s.tasks.next(task.Self)
		var info types.TaskInfo
		s.Registry.WithLock(ctx, task, func() { info = task.Info })
		switch info.State {
		case types.TaskInfoStateSuccess, types.TaskInfoStateError:
			s.Changed(task.Self) // nobody else would take the channel away
			return info
		}
		if see != nil {
			see(info)
		}
		<-changed
	}
}

// Result waits for a task that the simulator started itself, by its own client.
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
