package plugin

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"gpushare.io/scheduler/internal/bindlease"
)

// today is after the allocations that tests write. Virtual time begins in the year 2000.
var today = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	// The first call of Notify starts a goroutine that never ends. A scheduler in virtual time must not start it: all
	// goroutines there have to end.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	// The second handler limits the rate of errors by the time of the last one, and the clock of another test may have been
	// ahead.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// inVirtualTime runs a test with a clock of its own, which advances only while all goroutines wait: so a test says how
// long something takes, whatever the machine's speed. No goroutine may wait for a mutex meanwhile: the clock would stand still.
func inVirtualTime(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(today))
		// All goroutines have to end. Before 1.37 that of kube-scheduler's metrics may sleep for a second first.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		test(t)
	})
}

// virtually returns a subtest that runs in virtual time.
func virtually(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		inVirtualTime(t, test)
	}
}

// steadyClock follows Go's clock, also where that is virtual.
func steadyClock() bindlease.Clock {
	began := time.Now()
	return bindlease.Clock{Steady: func() time.Duration { return time.Since(began) }, Now: time.Now}
}
