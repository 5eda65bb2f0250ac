package world

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// post posts an event; a chain other than 0 ties it to its task.
func (s *Sim) post(ctx *simulator.Context, event types.BaseEvent, chain int32) {
	m := s.reg.EventManager()
	ctx.WithLock(m, func() {
		m.PostEvent(ctx, &types.PostEvent{EventToPost: event})
		if chain != 0 {
			event.GetEvent().ChainId = chain
		}
	})
}

func hostArgument(name string, host ref) types.HostEventArgument {
	return types.HostEventArgument{EntityEventArgument: types.EntityEventArgument{Name: name}, Host: host}
}
