package bindlease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Somebody who keeps to no rules has taken it.
func TestALeaseThatAnotherTookIsNotUsed(t *testing.T) {
	server := free()
	d := newDesk(t, server, "a")
	d.mustTake()
	server.write(heldBy("x"))
	d.now += d.Timing.Renew
	_ = d.tick()
	if _, err := d.ask(); err == nil {
		t.Error("two bind pods at a time")
	}
}

func TestALeaseThatAnotherTookIsNotGivenBack(t *testing.T) {
	server := free()
	d := newDesk(t, server, "a")
	d.mustTake()
	server.write(heldBy("x"))
	d.now += d.Timing.Idle
	_ = d.tick()
	if holder := server.holder(); holder != "x" {
		t.Errorf("it is held by %q", holder)
	}
	d.isStopping = true
	_ = d.tick()
	select {
	case <-d.stopped:
	default:
		t.Error("the scheduler waits until the other one gives it back")
	}
}

// Others count from when it was written, which may be long before the answer.
func TestALeaseLastsFromBeforeItsRenewalWasSent(t *testing.T) {
	server := free()
	d := newDesk(t, server, "a")
	const late = 2 * time.Second
	server.after = func() error { d.now += late; return nil }
	d.mustTake()
	d.now += d.Timing.Duration - d.Timing.Uncertain - late/2
	if _, err := d.ask(); err == nil {
		t.Error("a Binding may take effect when another one holds the Lease")
	}
}

// late is an API server that answers once it may.
type late struct {
	*server
	may chan struct{}
}

func (l late) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.may:
		return l.server.Get(ctx, name, options)
	}
}

func TestWhoHasWaitedInVainIsToldThatItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, told := late{free(), make(chan struct{})}, false
		lease := New(Config{
			Client: client, Identity: "a", Timing: RealTiming(), Clock: goClock(),
			TakeOver: func(context.Context) error { return nil }, Taken: func() { told = true },
			IsAwaited: func() bool { return false },
		})
		run(t, lease)
		if _, err := lease.Hold(context.Background()); err == nil {
			t.Fatal("held without an answer")
		}
		close(client.may)
		synctest.Wait()
		if !told {
			t.Error("the pod is not tried again")
		}
	})
}

func TestTheRealClockGoesOn(t *testing.T) {
	const nap = 10 * time.Millisecond
	clock := RealClock()
	began, now := clock.Steady(), clock.Now()
	time.Sleep(nap)
	if took := clock.Steady() - began; took < nap || took > clock.Now().Sub(now)+time.Second {
		t.Errorf("%s have passed", took)
	}
}
