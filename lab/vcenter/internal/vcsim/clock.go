package vcsim

import "time"

// SetClock sets the clock of the server by an offset from that of the machine. Tasks and events keep the times that
// they have.
// VMware: vSphere API reference, Event.createdTime, TaskInfo.startTime: times of the server's clock.
// Ours: events of vcsim itself, such as those of power operations, keep the machine's clock.
func (s *Sim) SetClock(offset time.Duration) { s.clock.Store(int64(offset)) }

// Now returns the time of the server's clock.
func (s *Sim) Now() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }
