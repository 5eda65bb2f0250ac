// Package clock is the time of the simulated data centre, which a test can let pass at once.
package clock

import (
	"sync"
	"time"
)

// Clock is a time that passes like that of the machine and can also jump forward.
type Clock struct {
	mu     sync.Mutex
	ahead  time.Duration
	jumped chan struct{} // closed by the next jump
}

// Machine is the time of the machine, for what other programs share with the simulator: certificates, and the waits
// of clients and listeners.
var Machine = new(Clock)

// Now returns the time of the data centre.
func (c *Clock) Now() time.Time {
	now, _ := c.read()
	return now
}

// Since returns the time that passed since then.
func (c *Clock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// Sleep waits until so much time has passed, by itself or by jumps.
func (c *Clock) Sleep(d time.Duration) { c.SleepUntil(c.Now().Add(d)) }

// After returns a channel that is closed when so much time has passed, by itself or by jumps.
func (c *Clock) After(d time.Duration) <-chan struct{} {
	end, done := c.Now().Add(d), make(chan struct{})
	go func() {
		defer close(done)
		c.SleepUntil(end)
	}()
	return done
}

// SleepUntil waits until a time has come, by itself or by jumps.
func (c *Clock) SleepUntil(end time.Time) {
	for now, jumped := c.read(); now.Before(end); now, jumped = c.read() {
		left := time.NewTimer(end.Sub(now))
		select {
		case <-left.C:
		case <-jumped:
		}
		left.Stop()
	}
}

// Advance lets time pass at once, and wakes those that waited for it.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	if c.jumped != nil {
		close(c.jumped)
		c.jumped = nil
	}
}

// read returns the time, and a channel that the next jump closes.
func (c *Clock) read() (time.Time, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jumped == nil {
		c.jumped = make(chan struct{})
	}
	return time.Now().Add(c.ahead), c.jumped
}
