// Package vcenter simulates the complete data centre: the receivers of calls, folders, roles, host profiles.
//
// vcsim: folders, roles and permissions. Privileges are not enforced: inject NoPermission as a fault.
package vcenter

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/inventory"
	"dml.vsphere/lab/vcenter/internal/judge"
	"dml.vsphere/lab/vcenter/internal/lifecycle"
	"dml.vsphere/lab/vcenter/internal/vcsim"
	"dml.vsphere/lab/vcenter/internal/vm"
)

// Server is the simulated vCenter with its data centre.
type Server struct {
	sim       *vcsim.Sim
	lifecycle *lifecycle.Service
	hosts     *esxi.Hosts
	clusters  *cluster.Clusters
	machines  *vm.Machines
	Judge     *judge.Judge
}

// New builds the data centre of a description; Close removes its files.
func New(desc *datacentre.Datacentre) (*Server, error) {
	sim, err := vcsim.New(desc)
	if err != nil {
		return nil, err
	}
	hosts := esxi.New(sim)
	clusters := cluster.New(sim, hosts)
	w := &Server{sim: sim, lifecycle: lifecycle.New(sim, hosts, clusters), hosts: hosts, clusters: clusters,
		machines: vm.New(sim, hosts)}
	w.install()
	if err := inventory.Build(context.Background(), sim, hosts, clusters, w.machines); err != nil {
		w.Close()
		return nil, err
	}
	sim.Complete.Store(true)
	return w, nil
}

// Close removes the data centre's files.
func (w *Server) Close() { w.sim.Model.Remove() }

// Service returns the SOAP and REST service of vcsim.
func (w *Server) Service() *simulator.Service { return w.sim.Model.Service }

// Machines returns the virtual machines.
func (w *Server) Machines() *vm.Machines { return w.machines }

// HostNames returns the names of all hosts, sorted.
func (w *Server) HostNames() []string { return w.hosts.Names() }

// HostNamed finds a host by its name.
func (w *Server) HostNamed(name string) (*esxi.Host, bool) { return w.hosts.Named(name) }

// ClusterNamed finds a cluster by its name.
func (w *Server) ClusterNamed(name string) (*cluster.Cluster, bool) { return w.clusters.Named(name) }

// ChangeHost changes a host as if another user or the hardware had changed it. The log of writes does not show it.
func (w *Server) ChangeHost(h *esxi.Host, c esxi.Change) error {
	if err := h.Apply(c); err != nil {
		return err
	}
	if c.HostProfile != nil {
		attachProfile(w.sim, w.sim.Context(), h.Self, *c.HostProfile)
	}
	return nil
}

// Owner returns the entity to which an object belongs: itself, or the host of a host's manager.
func (w *Server) Owner(of vcsim.Ref) vcsim.Ref { return w.sim.Owner(of) }

// Name returns the name of an entity, or "" for other objects.
func (w *Server) Name(of vcsim.Ref) string { return w.sim.Name(of) }

// OwnsREST reports whether the simulator answers a REST path itself.
func (w *Server) OwnsREST(path string) bool { return w.lifecycle.OwnsREST(path) }

// ServeREST answers the REST paths of the simulator.
func (w *Server) ServeREST(out http.ResponseWriter, r *http.Request) { w.lifecycle.ServeREST(out, r) }

// Since reports whether the version of the vCenter is the named one or a later one.
func (w *Server) Since(version string) bool { return w.sim.Knows.Since(version) }

// Vanish removes a virtual machine as another client might at any time.
func (w *Server) Vanish(machine string) error {
	m, ok := w.machines.Named(machine)
	if !ok {
		return fmt.Errorf("no virtual machine %q", machine)
	}
	return m.Vanish()
}

// MachineSize returns the memory in MB, the processors and the object of a virtual machine; 0 and "" without one.
func (w *Server) MachineSize(machine string) (int32, int32, string) {
	m, ok := w.machines.Named(machine)
	if !ok {
		return 0, 0, ""
	}
	return m.Summary.Config.MemorySizeMB, m.Summary.Config.NumCpu, m.Self.Value
}

// MoveByDRS lets DRS move a virtual machine to a host.
func (w *Server) MoveByDRS(machine, host string) error {
	m, ok := w.machines.Named(machine)
	if !ok {
		return fmt.Errorf("no virtual machine %q", machine)
	}
	h, ok := w.hosts.Named(host)
	if !ok {
		return fmt.Errorf("no host %q", host)
	}
	m.MoveByDRS(h.Self)
	return nil
}

// ServiceVersions returns the document that lists the versions of the API that a client may use.
// VMware: govmomi, simulator.Service.ServiceVersions; the list of versions is that of pyVmomi 9.1. vcsim lists only
// 6.0 and 5.5, regardless of its version.
func (w *Server) ServiceVersions() string {
	var prior strings.Builder
	for _, one := range w.sim.Knows.Prior() {
		prior.WriteString("<version>" + one + "</version>")
	}
	return xml.Header + `<namespaces version="1.0"><namespace><name>urn:vim25</name><version>` +
		w.sim.Description.APIVersion + `</version><priorVersions>` + prior.String() +
		`</priorVersions></namespace></namespaces>`
}

// ForgetTasks removes all tasks.
func (w *Server) ForgetTasks() { w.sim.ForgetTasks() }

// EndSession removes a session.
func (w *Server) EndSession(key string) {
	ctx := w.sim.Context()
	ctx.Context = context.Background()
	w.sim.Registry.SessionManager().TerminateSession(ctx, &types.TerminateSession{SessionId: []string{key}})
}

// JudgeCall judges a write of a client.
func (w *Server) JudgeCall(method string, on vcsim.Ref, body []byte) { w.Judge.Call(method, on, body) }

// NeverReturns makes the next reboot of a host its last.
func (w *Server) NeverReturns(host vcsim.Ref) {
	if h := w.hosts.ByRef(host); h != nil {
		h.NeverReturn()
	}
}
