package vcenter

import (
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/clock"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Clock returns the time of the data centre.
func (w *Server) Clock() *clock.Clock { return w.sim.Clock }

// SetClock sets the clock of the server by an offset from the time of the data centre.
func (w *Server) SetClock(offset time.Duration) { w.sim.SetClock(offset) }

// clockMethods are the methods of the service instance that depend on the server's clock.
type clockMethods struct {
	self vcsim.Ref
	sim  *vcsim.Sim
}

func (m *clockMethods) Reference() vcsim.Ref { return m.self }

// CurrentTime returns the server's clock, which the control interface may set.
// VMware: vSphere API reference, ServiceInstance.CurrentTime.
func (m *clockMethods) CurrentTime(*types.CurrentTime) soap.HasFault {
	return &methods.CurrentTimeBody{Res: &types.CurrentTimeResponse{Returnval: m.sim.Now()}}
}
