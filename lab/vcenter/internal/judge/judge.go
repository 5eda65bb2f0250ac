// Package judge checks every transition of the data centre when it happens, against rules that no test may break
// unless it says so.
//
// vcsim: nothing.
package judge

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// The rules.
const (
	HostsOut = "hosts_out" // more hosts of a cluster out of service at once than the description allows
	Lost     = "lost"      // a powered-on virtual machine lost its host or left the inventory
	Foreign  = "foreign"   // an object that the description declares as foreign was written
	Lock     = "lock"      // a lock was taken from a living run, or freed while a host leaves service
)

// Violation is a transition that broke a rule.
type Violation struct {
	Time time.Time `json:"time"`
	Rule string    `json:"rule"`
	What string    `json:"what"`
}

// Judge is a copy of what the rules need. It learns of each change from vcsim, which holds the lock of the object, so
// it takes no lock of vcsim itself.
// Ours: changes through the control interface play the part of others, and break no rule. A host that they took out of
// service counts.
type Judge struct {
	mo.Folder // gives the judge a reference for vcsim's registry
	sim       *vcsim.Sim

	mu         sync.Mutex
	violations []Violation
	entities   map[vcsim.Ref]*entity
	locks      map[vcsim.Ref]record // by the folder of the lock
}

// entity is what the judge knows of a managed entity.
type entity struct {
	name    string
	parent  vcsim.Ref
	on      bool               // of a virtual machine
	host    vcsim.Ref          // of a virtual machine
	resting bool               // of a host: in maintenance mode
	apart   bool               // of a host: not connected
	leaving map[vcsim.Ref]bool // of a host: tasks that take it out of service
}

func (e *entity) out() bool { return e.resting || e.apart || len(e.leaving) > 0 }

// Install starts the judge of a data centre.
func Install(sim *vcsim.Sim) *Judge {
	j := &Judge{sim: sim, entities: map[vcsim.Ref]*entity{}, locks: map[vcsim.Ref]record{}}
	j.Folder.Self = vcsim.Ref{Type: "LabJudge", Value: "lab-judge"}
	sim.Registry.AddHandler(j)
	return j
}

// Violations returns what broke a rule, oldest first.
func (j *Judge) Violations() []Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Violation{}, j.violations...)
}

func (j *Judge) broken(rule, format string, words ...any) {
	j.violations = append(j.violations,
		Violation{Time: j.sim.Clock.Now().UTC(), Rule: rule, What: fmt.Sprintf(format, words...)})
}

// isClient reports whether a client of the API causes a change, and not the control interface or the description.
func isClient(ctx *simulator.Context) bool {
	return ctx != nil && ctx.Session != nil && ctx.Session.UserName != ""
}

// PutObject is called by vcsim for every new object.
func (j *Judge) PutObject(_ *simulator.Context, o mo.Reference) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch x := o.(type) {
	case *simulator.Task:
		if reason, ok := x.Info.Reason.(*types.TaskReasonUser); ok && reason.UserName != "" {
			j.begins(x.Task)
		}
	case mo.Entity:
		j.learn(x)
	}
}

// UpdateObject is called by vcsim under the lock of the changed object.
func (j *Judge) UpdateObject(ctx *simulator.Context, o mo.Reference, _ []types.PropertyChange) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch x := o.(type) {
	case *mo.Task:
		j.ends(ctx, x)
	case *mo.HostSystem:
		j.host(ctx, x.Self, func(e *entity) {
			e.resting = x.Runtime.InMaintenanceMode
			e.apart = x.Runtime.ConnectionState != types.HostSystemConnectionStateConnected
		})
		j.learn(x)
	case *mo.VirtualMachine:
		e := j.learn(x)
		e.on = x.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
		if x.Runtime.Host != nil {
			e.host = *x.Runtime.Host
		}
	case *mo.Folder:
		j.learn(x)
		j.generation(x.Self)
	case mo.Entity:
		j.learn(x)
	}
}

// RemoveObject is called by vcsim for every object that leaves the registry.
func (j *Judge) RemoveObject(ctx *simulator.Context, gone types.ManagedObjectReference) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over(gone)
	e := j.entities[gone]
	if e == nil {
		return
	}
	if isClient(ctx) && e.on {
		j.broken(Lost, "%s was removed while it was powered on", e.name)
	}
	if name := j.foreign(gone); isClient(ctx) && name != "" {
		j.broken(Foreign, "%s was removed, and %s is foreign", e.name, name)
	}
	delete(j.entities, gone)
}

// learn returns what is known of an entity, with its present name and parent.
func (j *Judge) learn(o mo.Entity) *entity {
	now := o.Entity()
	e := j.entities[now.Self]
	if e == nil {
		e = &entity{leaving: map[vcsim.Ref]bool{}}
		j.entities[now.Self] = e
	}
	e.name = now.Name
	if now.Parent != nil {
		e.parent = *now.Parent
	}
	return e
}

// begins learns of a task that takes a host out of service.
func (j *Judge) begins(task mo.Task) {
	if task.Info.DescriptionId == "HostSystem.enterMaintenanceMode" {
		j.host(nil, *task.Info.Entity, func(e *entity) { e.leaving[task.Self] = true })
	}
}

// ends learns of the end of a task that takes a host out of service; vcsim disconnects a host without a change of it.
func (j *Judge) ends(ctx *simulator.Context, task *mo.Task) {
	if task.Info.CompleteTime == nil || task.Info.Entity == nil || task.Info.Entity.Type != "HostSystem" {
		return
	}
	j.host(ctx, *task.Info.Entity, func(e *entity) {
		delete(e.leaving, task.Self)
		e.apart = e.apart || task.Info.DescriptionId == "HostSystem.disconnectHost"
	})
}

// over forgets a task that was cancelled, or removed by a restart of the vCenter.
func (j *Judge) over(task vcsim.Ref) {
	if task.Type != "Task" {
		return
	}
	for _, e := range j.entities {
		delete(e.leaving, task)
	}
}

// host changes what is known of a host, and judges it if it left service or lost its connection. A task that begins
// has no context.
func (j *Judge) host(ctx *simulator.Context, ref vcsim.Ref, change func(*entity)) {
	e := j.entities[ref]
	if e == nil {
		return
	}
	was := *e
	wasOut := was.out()
	change(e)
	if ctx != nil && !isClient(ctx) {
		return
	}
	if others := j.othersOut(e); !wasOut && e.out() && len(others) >= max(j.sim.Description.HostsOut, 1) {
		j.broken(HostsOut, "%s left service while %s was out of service", e.name, strings.Join(others, ", "))
	}
	for _, vm := range j.entities {
		if !was.apart && e.apart && vm.on && vm.host == ref {
			j.broken(Lost, "%s lost its connection with %s powered on", e.name, vm.name)
		}
	}
}

// othersOut returns the names of the other hosts of the cluster of a host that are out of service.
func (j *Judge) othersOut(e *entity) []string {
	var others []string
	for _, other := range j.entities {
		if other != e && other.parent == e.parent && other.out() {
			others = append(others, other.name)
		}
	}
	slices.Sort(others)
	return others
}
