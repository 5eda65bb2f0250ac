// Package vm simulates the virtual machines: power, moves, reconfiguration, clones, guests, external mode.
//
// vcsim: creates, clones, customizes, powers on and off virtual machines, and keeps their snapshots.
package vm

import (
	"fmt"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Machines are the virtual machines of the data centre.
type Machines struct {
	sim   *vcsim.Sim
	hosts *esxi.Hosts
	// External gives orders for virtual machines to a listener.
	External External

	mu   sync.Mutex
	busy map[vcsim.Ref]*turn // virtual machines with a running task

	profiles map[vcsim.Ref]Profiles // with mu

	space sync.Mutex // held while vcsim allocates or frees datastore space; taken before all locks of vcsim
}

// New returns the set of virtual machines, without a listener.
func New(sim *vcsim.Sim, hosts *esxi.Hosts) *Machines {
	return &Machines{sim: sim, hosts: hosts, External: External{waiting: map[string]*order{}},
		busy: map[vcsim.Ref]*turn{}, profiles: map[vcsim.Ref]Profiles{}}
}

// turn is the running task of a virtual machine.
type turn struct {
	queues bool          // other tasks of this kind wait for its end
	ended  chan struct{} // closed at the end
}

// Methods answers the calls to a virtual machine that vcsim answers without checks.
type Methods struct {
	*simulator.VirtualMachine
	machines *Machines
	sim      *vcsim.Sim
}

// SetCustomValue sets a custom attribute by its name.
// VMware: vSphere API reference, ExtensibleManagedObject.setCustomValue.
func (m *Methods) SetCustomValue(ctx *simulator.Context, req *types.SetCustomValue) soap.HasFault {
	body := m.VirtualMachine.SetCustomValue(ctx, req)
	m.sim.ShowAttributes(ctx, m.Self)
	return body
}

// status is the state of a virtual machine at one moment.
type status struct {
	name       string
	on         bool
	host       *esxi.Host
	vgpus      []string
	directPath bool // a DirectPath or SR-IOV device, which forbids vMotion
	dvx        []string
	vtpm       bool
	encryption string // of its moves: required, opportunistic or disabled
}

// read reads the state of a virtual machine under its lock.
func (m *Methods) read(ctx *simulator.Context) status {
	var now status
	ctx.WithLock(m.VirtualMachine, func() {
		now.name = m.Name
		now.on = m.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
		if m.Runtime.Host != nil {
			now.host = m.machines.hosts.ByRef(*m.Runtime.Host)
		}
		for _, d := range m.Config.Hardware.Device {
			now.add(d)
		}
		// VMware: vSphere Security: a virtual TPM encrypts the home of its virtual machine.
		if now.encryption = m.Config.MigrateEncryption; m.Config.KeyId != nil || now.vtpm {
			now.encryption = required
		}
	})
	return now
}

// add adds a device.
func (n *status) add(d types.BaseVirtualDevice) {
	switch x := d.(type) {
	case *types.VirtualPCIPassthrough:
		switch b := x.Backing.(type) {
		case *types.VirtualPCIPassthroughVmiopBackingInfo:
			n.vgpus = append(n.vgpus, b.Vgpu)
		case *types.VirtualPCIPassthroughDvxBackingInfo:
			n.dvx = append(n.dvx, b.DeviceClass)
		default:
			n.directPath = true
		}
	case *types.VirtualTPM:
		n.vtpm = true
	case *types.VirtualSriovEthernetCard:
		if x.DvxBackingInfo == nil {
			n.directPath = true
		} else {
			n.dvx = append(n.dvx, x.DvxBackingInfo.DeviceClass)
		}
	}
}

func (n status) hostName() string {
	if n.host == nil {
		return ""
	}
	return n.host.Spec.Name
}

// run starts a task on the virtual machine; a second one at the same time fails with TaskInProgress.
// VMware: pyVmomi 9.1, faults of PowerOnVM_Task and others: TaskInProgress.
func (m *Methods) run(ctx *simulator.Context, name, description string, f vcsim.Work) vcsim.Ref {
	return m.sim.Start(ctx, m.VirtualMachine, name, description, func(j *vcsim.Job) (any, vcsim.Fault) {
		if !m.machines.occupy(m.Self, false) {
			return nil, &types.TaskInProgress{Task: j.Task.Self}
		}
		defer m.machines.vacate(m.Self)
		return f(j)
	})
}

// inTurn starts a task that waits for the end of tasks of its kind; during another task it fails with TaskInProgress.
// Ours: vpxd queues reconfigurations of one virtual machine (unproven beyond what clients report).
func (m *Methods) inTurn(ctx *simulator.Context, name, description string, f vcsim.Work) vcsim.Ref {
	return m.sim.Start(ctx, m.VirtualMachine, name, description, func(j *vcsim.Job) (any, vcsim.Fault) {
		if !m.machines.occupy(m.Self, true) {
			return nil, &types.TaskInProgress{Task: j.Task.Self}
		}
		defer m.machines.vacate(m.Self)
		return f(j)
	})
}

// occupy registers the running task of a virtual machine; a task that queues waits for others that queue.
func (s *Machines) occupy(vm vcsim.Ref, queues bool) bool {
	for {
		s.mu.Lock()
		now, busy := s.busy[vm]
		if !busy {
			s.busy[vm] = &turn{queues: queues, ended: make(chan struct{})}
		}
		s.mu.Unlock()
		switch {
		case !busy:
			return true
		case !queues || !now.queues:
			return false
		}
		<-now.ended
	}
}

func (s *Machines) vacate(vm vcsim.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.busy[vm].ended)
	delete(s.busy, vm)
}

// forward lets vcsim carry out a call and waits for its task.
func (m *Methods) forward(j *vcsim.Job, call func(*simulator.Context) soap.HasFault) (any, vcsim.Fault) {
	inner := vcsim.Detached(j.Ctx)
	var body soap.HasFault
	inner.WithLock(m.VirtualMachine, func() { body = call(inner) })
	if f := body.Fault(); f != nil {
		fault, ok := f.VimFault().(vcsim.Fault)
		if !ok {
			fault = new(types.SystemError)
		}
		return nil, fault
	}
	task := vcsim.TaskOf(body)
	m.sim.Hide(j.Ctx, task)
	return j.Follow(task)
}

// forwardAlone is like forward, for calls that create, change or remove disks, one virtual machine at a time.
// Ours: vcsim allocates datastore space under a lock, but reads the datastore for another virtual machine without the
// lock.
func (m *Methods) forwardAlone(j *vcsim.Job, call func(*simulator.Context) soap.HasFault) (any, vcsim.Fault) {
	m.machines.space.Lock()
	defer m.machines.space.Unlock()
	return m.forward(j, call)
}

// hostFault returns the fault of a virtual machine whose host is not connected, or nil if it is connected.
func (n status) hostFault(ctx *simulator.Context) vcsim.Fault {
	if n.host == nil {
		return nil
	}
	if !n.host.Connected(ctx) {
		return new(types.HostNotConnected)
	}
	return nil
}

// powerFault returns the fault if the virtual machine is already in the requested power state.
func (n status) powerFault(on bool) vcsim.Fault {
	if n.on != on {
		return nil
	}
	state := types.VirtualMachinePowerStatePoweredOff
	if on {
		state = types.VirtualMachinePowerStatePoweredOn
	}
	return &types.InvalidPowerState{RequestedState: state, ExistingState: state}
}

// Report is the state of a virtual machine in the control interface.
type Report struct {
	Name    string   `json:"name"`
	MOID    string   `json:"moid"`
	Host    string   `json:"host"`
	On      bool     `json:"powered_on"`
	VGPUs   []string `json:"vgpus"`
	Address string   `json:"address"`
	// Extra are the advanced settings, including guestinfo.
	Extra map[string]string `json:"extra_config"`
}

// Named finds a virtual machine by its name.
func (s *Machines) Named(name string) (*Methods, bool) {
	for _, o := range s.sim.Registry.AllReference("VirtualMachine") {
		if vm, ok := o.(*simulator.VirtualMachine); ok && s.sim.Name(vm.Self) == name {
			return s.Methods(vm), true
		}
	}
	return nil, false
}

// Methods returns the receiver of the calls to a virtual machine.
func (s *Machines) Methods(vm *simulator.VirtualMachine) *Methods {
	return &Methods{VirtualMachine: vm, machines: s, sim: s.sim}
}

// Report returns the current state of a virtual machine.
func (s *Machines) Report(name string) (Report, bool) {
	m, ok := s.Named(name)
	if !ok {
		return Report{}, false
	}
	ctx := s.sim.Context()
	now := m.read(ctx)
	r := Report{Name: name, MOID: m.Self.Value, Host: now.hostName(), On: now.on, VGPUs: now.vgpus,
		Extra: map[string]string{}}
	ctx.WithLock(m.VirtualMachine, func() {
		for _, o := range m.Config.ExtraConfig {
			v := o.GetOptionValue()
			r.Extra[v.Key] = fmt.Sprint(v.Value)
		}
		if m.Guest != nil {
			r.Address = m.Guest.IpAddress
		}
	})
	return r, true
}

// move moves a reference from one list to another and notifies PropertyCollectors of both.
func move(
	ctx *simulator.Context, what vcsim.Ref, from, to mo.Reference, path string, list func(mo.Reference) []vcsim.Ref,
) {
	ctx.WithLock(from, func() {
		ctx.Update(from, []types.PropertyChange{vcsim.Change(path, vcsim.Without(list(from), what))})
	})
	ctx.WithLock(to, func() {
		ctx.Update(to, []types.PropertyChange{vcsim.Change(path, append(vcsim.Without(list(to), what), what))})
	})
}
