package vcsim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Job is a running task. Tasks of vcsim lock their entity until they end, so that no client can read it.
type Job struct {
	sim   *Sim
	Ctx   *simulator.Context
	Task  *simulator.Task
	Began time.Time // by the time of the data centre; a jump right after the call counts
	Words string    // the message of the fault, instead of the usual one
}

// Work is the work of a task; a returned fault ends the task with an error.
type Work func(j *Job) (any, Fault)

// Start starts a task on an entity and returns immediately.
func (s *Sim) Start(ctx *simulator.Context, entity mo.Entity, name, description string, f Work) Ref {
	return s.StartFor(ctx, entity.Reference(), entity.Entity().Name, name, description, f)
}

// StartFor starts a task that does not lock its entity, shows progress and user, and can be cancelled.
// VMware: vSphere API reference, TaskInfo. Tasks of vcsim lock their entity until they end, so that no client can
// read it.
func (s *Sim) StartFor(ctx *simulator.Context, on Ref, entityName, name, description string, f Work) Ref {
	t := simulator.CreateTask(on, name, nil)
	t.Info.DescriptionId = cmp.Or(description, t.Info.DescriptionId)
	t.Info.EntityName = entityName
	if ctx.Session != nil {
		t.Info.Reason = &types.TaskReasonUser{UserName: ctx.Session.UserName}
	}
	t.Info.Cancelable = true
	t.Info.State = types.TaskInfoStateRunning
	now := s.Now()
	t.Info.QueueTime, t.Info.StartTime = now, &now
	t.Self = Ref{Type: "Task", Value: s.nextTask()}
	t.Info.Key, t.Info.Task = t.Self.Value, t.Self
	t.Info.EventChainId = s.begin(ctx, t.Info)
	// vcsim records the new task on its entity without locking the entity
	ctx.WithLock(on, func() { s.Registry.Put(t) })
	j := &Job{sim: s, Ctx: Detached(ctx), Task: t, Began: s.Clock.Now()}
	go func() { j.finish(f(j)) }()
	return t.Self
}

// begin posts the event of a new task, and returns the chain id of the event.
// VMware: vSphere API reference, TaskEvent; events that ManageIQ recorded in 2018 and 2022: the key of
// the event is its chain, and its task is queued. vcsim posts none.
// Ours: no events for changes through the control interface, which simulates DRS.
func (s *Sim) begin(ctx *simulator.Context, info types.TaskInfo) int32 {
	if ctx.Session == nil {
		return s.nextChain()
	}
	info.State, info.StartTime = types.TaskInfoStateQueued, nil
	event := &types.TaskEvent{Info: info}
	switch info.Entity.Type {
	case "VirtualMachine":
		named := types.EntityEventArgument{Name: info.EntityName}
		event.Vm = &types.VmEventArgument{EntityEventArgument: named, Vm: *info.Entity}
	case "HostSystem":
		argument := HostArgument(info.EntityName, *info.Entity)
		event.Host = &argument
	}
	s.Post(ctx, event, 0)
	return event.Key
}

// Hide removes a task of vcsim, which works for a task of this simulator, from the lists of recent tasks.
// VMware: vSphere API reference, TaskManager.recentTask: one task for each operation.
// Ours: task histories (TaskHistoryCollector) still contain it.
func (s *Sim) Hide(ctx *simulator.Context, inner Ref) {
	task, ok := s.Registry.Get(inner).(*simulator.Task)
	if !ok {
		return
	}
	manager := s.Registry.Get(*s.Client.ServiceContent.TaskManager).(*simulator.TaskManager)
	ctx.WithLock(manager, func() {
		ctx.Update(manager, []types.PropertyChange{Change("recentTask", Without(manager.RecentTask, inner))})
	})
	if entity, ok := s.Registry.Get(*task.Info.Entity).(mo.Entity); ok {
		ctx.WithLock(entity, func() {
			left := Without(entity.Entity().RecentTask, inner)
			ctx.Update(entity, []types.PropertyChange{Change("recentTask", left)})
		})
	}
}

func (s *Sim) nextTask() string { return fmt.Sprintf("task-lab-%d", s.taskCounter.Add(1)) }

// nextChain returns a chain id outside the range of vcsim's events.
func (s *Sim) nextChain() int32 { return 1_000_000 + int32(s.chainCounter.Add(1)) }

// Progress sets the progress of the task in percent.
func (j *Job) Progress(percent int32) {
	j.sim.Update(j.Ctx, j.Task, Change("info.progress", percent))
}

// Cancelled reports whether a client cancelled the task.
func (j *Job) Cancelled() bool {
	var yes bool
	j.sim.Registry.WithLock(j.Ctx, j.Task, func() { yes = j.Task.Info.Cancelled })
	return yes
}

func (j *Job) finish(result types.AnyType, fault Fault) {
	changes := []types.PropertyChange{Change("info.completeTime", j.sim.Now())}
	if fault != nil {
		err := Localized(fault)
		err.LocalizedMessage = cmp.Or(j.Words, err.LocalizedMessage)
		changes = append(changes, Change("info.error", err), Change("info.state", types.TaskInfoStateError))
	} else {
		changes = append(changes, Change("info.result", result), Change("info.state", types.TaskInfoStateSuccess))
	}
	j.sim.Registry.WithLock(j.Ctx, j.Task, func() {
		if j.Task.Info.State == types.TaskInfoStateRunning {
			j.Ctx.Update(j.Task, changes)
		}
	})
}
