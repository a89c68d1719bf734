package bindlease

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock is replaced in tests.
type Clock struct {
	// Steady is the time since some moment, that included in which the machine was suspended: for others the Lease
	// expires meanwhile. Go's own clock leaves it out.
	Steady func() time.Duration
	// Now is the time of day, for people: it may jump.
	Now func() time.Time
}

// RealClock is the clock of the machine.
func RealClock() Clock { return Clock{steady, time.Now} }

func steady() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(now.Nano())
}
