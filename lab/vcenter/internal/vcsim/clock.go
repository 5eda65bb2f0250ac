package vcsim

import "time"

// SetClock sets the clock of the server by an offset from the time of the data centre. Tasks and events keep the times
// that they have.
// VMware: vSphere API reference, Event.createdTime, TaskInfo.startTime: times of the server's clock.
// Ours: events of vcsim itself, such as those of power operations, have the time of the machine.
func (s *Sim) SetClock(offset time.Duration) { s.offset.Store(int64(offset)) }

// Now returns the time of the server's clock.
func (s *Sim) Now() time.Time { return s.Clock.Now().Add(time.Duration(s.offset.Load())) }
