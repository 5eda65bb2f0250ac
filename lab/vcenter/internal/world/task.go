package world

import (
	"fmt"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// job is a running task: vcsim's own tasks hold the entity's lock to their end, so that nobody can even read it.
type job struct {
	sim   *Sim
	ctx   *simulator.Context
	task  *simulator.Task
	words string // said instead of the fault's own words
}

// work is what a task does; its fault ends the task in error.
type work func(j *job) (types.AnyType, types.BaseMethodFault)

// start begins a task on an entity and returns at once.
func (s *Sim) start(ctx *simulator.Context, entity mo.Entity, name, description string, f work) ref {
	return s.startFor(ctx, entity.Reference(), entity.Entity().Name, name, description, f)
}

func (s *Sim) startFor(ctx *simulator.Context, on ref, entityName, name, description string, f work) ref {
	t := simulator.CreateTask(on, name, nil)
	t.Info.DescriptionId = orText(description, t.Info.DescriptionId)
	t.Info.EntityName = entityName
	if ctx.Session != nil {
		t.Info.Reason = &types.TaskReasonUser{UserName: ctx.Session.UserName}
	}
	t.Info.Cancelable = true
	t.Info.State = types.TaskInfoStateRunning
	now := time.Now()
	t.Info.StartTime = &now
	t.Self = ref{Type: "Task", Value: s.nextTask()}
	t.Info.Key, t.Info.Task = t.Self.Value, t.Self
	t.Info.EventChainId = s.nextChain()
	// vcsim notes the new task on its entity, and does not lock it for that
	ctx.WithLock(on, func() { s.reg.Put(t) })
	j := &job{sim: s, ctx: detached(ctx), task: t}
	go func() { j.finish(f(j)) }()
	return t.Self
}

func (s *Sim) nextTask() string { return fmt.Sprintf("task-lab-%d", s.taskCounter.Add(1)) }

// nextChain keeps clear of the numbers vcsim gives to events.
func (s *Sim) nextChain() int32 { return 1_000_000 + int32(s.chainCounter.Add(1)) }

func (j *job) progress(percent int32) {
	j.sim.update(j.ctx, j.task, change("info.progress", percent))
}

// cancelled says whether somebody cancelled the task.
func (j *job) cancelled() bool {
	var yes bool
	j.sim.reg.WithLock(j.ctx, j.task, func() { yes = j.task.Info.Cancelled })
	return yes
}

func (j *job) finish(result types.AnyType, fault types.BaseMethodFault) {
	changes := []types.PropertyChange{change("info.completeTime", time.Now())}
	if fault != nil {
		err := localized(fault)
		err.LocalizedMessage = orText(j.words, err.LocalizedMessage)
		changes = append(changes, change("info.error", err), change("info.state", types.TaskInfoStateError))
	} else {
		changes = append(changes, change("info.result", result), change("info.state", types.TaskInfoStateSuccess))
	}
	j.sim.reg.WithLock(j.ctx, j.task, func() {
		if j.task.Info.State == types.TaskInfoStateRunning {
			j.ctx.Update(j.task, changes)
		}
	})
}
