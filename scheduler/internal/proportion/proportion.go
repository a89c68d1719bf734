// Package proportion tells tests whether work takes time in proportion to its amount. It compares the CPU time of little
// and much work: on a machine that is slow or busy, elapsed time says little. Tests alone use it.
package proportion

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

const (
	// times is how many times as much work the second measurement has. Work that grows with the square takes 64 times
	// as long.
	times = 8
	// most is how many times as long it may take. Work in proportion takes 8 times as long, and somewhat longer once
	// it no longer fits into the processor's caches.
	most = 4 * times
	// least is the shortest time that counts: the runtime's own work adds to shorter ones.
	least = 5 * time.Millisecond
	// attempts is how many measurements have to fail: the garbage collector may spoil one.
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
