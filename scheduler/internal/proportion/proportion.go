// Package proportion tells tests whether work takes time in proportion to its amount. It measures how much longer
// more work takes, and in CPU time: seconds say little on a machine that is slow or busy. Nothing else uses it.
package proportion

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

const (
	// times is how much more work there is the second time. With its square, 64, the time of an eighth would grow.
	times = 8
	// most is how much longer it may take. What is in proportion takes 8 times as long, and somewhat longer where
	// caches no longer hold it.
	most = 4 * times
	// least is below what can be told from what the runtime does besides.
	least = 5 * time.Millisecond
	// attempts are made before the work is blamed for what else the machine did.
	attempts = 3
)

// Check prepares number/8 and number of something, and returns an error where the work on number takes far more
// than 8 times as long.
func Check(number int, prepare func(number int) (work func())) error {
	var few, all time.Duration
	for range attempts {
		few, all = max(measured(prepare(number/times)), least), measured(prepare(number))
		if all <= most*few {
			return nil
		}
	}
	return fmt.Errorf("%d take %s of CPU time, and %d take %s", number/times, few, number, all)
}

func measured(work func()) time.Duration {
	runtime.GC()
	begun := used()
	work()
	return used() - begun
}

// used is the CPU time of this process.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
