package clock

import (
	"testing"
	"time"
)

func TestAJumpEndsWaitsThatAreOverByThen(t *testing.T) {
	c := new(Clock)
	begin := c.Now()
	short, long := c.After(time.Hour), c.After(3*time.Hour)

	c.Advance(2 * time.Hour)

	<-short
	select {
	case <-long:
		t.Error("a wait of three hours ended after two")
	default:
	}
	c.Advance(time.Hour)
	<-long
	if passed := c.Since(begin).Round(time.Minute); passed != 3*time.Hour {
		t.Errorf("%v passed", passed)
	}
}

func TestTimePassesWithoutJumps(t *testing.T) {
	c := new(Clock)
	begin := c.Now()

	c.Sleep(20 * time.Millisecond)

	if passed := c.Since(begin); passed < 20*time.Millisecond || passed > time.Minute {
		t.Errorf("%v passed", passed)
	}
}
