package world

import (
	"fmt"
	"reflect"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// job is a running task: vcsim's own tasks hold the entity's lock to their end, so that nobody can even read it.
type job struct {
	world *World
	ctx   *simulator.Context
	task  *simulator.Task
	words string // said instead of the fault's own words
}

// work is what a task does; its fault ends the task in error.
type work func(j *job) (types.AnyType, types.BaseMethodFault)

// start begins a task on an entity and returns at once.
func (w *World) start(ctx *simulator.Context, entity mo.Entity, name, description string, f work) ref {
	return w.startFor(ctx, entity.Reference(), entity.Entity().Name, name, description, f)
}

func (w *World) startFor(ctx *simulator.Context, on ref, entityName, name, description string, f work) ref {
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
	t.Self = ref{Type: "Task", Value: w.nextTask()}
	t.Info.Key, t.Info.Task = t.Self.Value, t.Self
	t.Info.EventChainId = w.nextChain()
	// vcsim notes the new task on its entity, and does not lock it for that
	ctx.WithLock(on, func() { w.reg.Put(t) })
	j := &job{world: w, ctx: detached(ctx), task: t}
	go func() { j.finish(f(j)) }()
	return t.Self
}

func (w *World) nextTask() string { return fmt.Sprintf("task-lab-%d", w.taskCounter.Add(1)) }

// nextChain keeps clear of the numbers vcsim gives to events.
func (w *World) nextChain() int32 { return 1_000_000 + int32(w.chainCounter.Add(1)) }

func (j *job) progress(percent int32) {
	j.world.update(j.ctx, j.task, change("info.progress", percent))
}

// cancelled says whether somebody cancelled the task.
func (j *job) cancelled() bool {
	var yes bool
	j.world.reg.WithLock(j.ctx, j.task, func() { yes = j.task.Info.Cancelled })
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
	j.world.reg.WithLock(j.ctx, j.task, func() {
		if j.task.Info.State == types.TaskInfoStateRunning {
			j.ctx.Update(j.task, changes)
		}
	})
}

// localized is a fault with the words a vCenter would show.
func localized(fault types.BaseMethodFault) types.LocalizedMethodFault {
	return types.LocalizedMethodFault{Fault: fault, LocalizedMessage: message(fault)}
}

// message is what a vCenter says about a fault, as far as we know it; else the name of the fault's type.
func message(fault types.BaseMethodFault) string {
	if cause := fault.GetMethodFault().FaultCause; cause != nil && cause.LocalizedMessage != "" {
		return cause.LocalizedMessage
	}
	switch f := fault.(type) {
	case *types.InvalidArgument:
		return "A specified parameter was not correct: " + f.InvalidProperty
	case *types.InvalidName:
		return "The name '" + f.Name + "' is invalid."
	case *types.InvalidPowerState:
		return "The attempted operation cannot be performed in the current state (" + powerWords[f.ExistingState] + ")."
	}
	name := reflect.TypeOf(fault).Elem().Name()
	return orText(faultWords[name], name)
}

var powerWords = map[types.VirtualMachinePowerState]string{
	types.VirtualMachinePowerStatePoweredOn: "Powered on", types.VirtualMachinePowerStatePoweredOff: "Powered off", types.VirtualMachinePowerStateSuspended: "Suspended",
}

// faultWords is what a vCenter says about faults that carry nothing.
var faultWords = map[string]string{
	"HostNotConnected":                   "Unable to communicate with the remote host, since it is disconnected.",
	"InsufficientGraphicsResourcesFault": "The amount of graphics resource available in the parent resource pool is insufficient for the operation.",
	"InvalidHostState":                   "The operation is not allowed in the current connection state of the host.",
	"InvalidState":                       "The operation is not allowed in the current state.",
	"NotFound":                           "The object or item referred to could not be found.",
	"RequestCanceled":                    "The task was canceled by a user.",
	"TaskInProgress":                     "Another task is already in progress.",
	"Timedout":                           "Operation timed out.",
}
