package vcsim

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// Post posts an event; a chain id other than 0 ties the event to its task.
// VMware: vSphere API reference, Event.chainId, TaskInfo.eventChainId.
func (s *Sim) Post(ctx *simulator.Context, event types.BaseEvent, chain int32) {
	m := s.Registry.EventManager()
	ctx.WithLock(m, func() {
		m.PostEvent(ctx, &types.PostEvent{EventToPost: event})
		event.GetEvent().CreatedTime = s.Now()
		if chain != 0 {
			event.GetEvent().ChainId = chain
		}
	})
}

// HostArgument returns a host in the format of events.
func HostArgument(name string, host Ref) types.HostEventArgument {
	return types.HostEventArgument{EntityEventArgument: types.EntityEventArgument{Name: name}, Host: host}
}
