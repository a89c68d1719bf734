package bindlease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// run has Run look after the Lease, and returns what stops it.
func run(t *testing.T, lease *Lease) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { lease.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return cancel
}

// goClock follows Go's clock, which is virtual where these tests run.
func goClock() Clock {
	began := time.Now()
	return Clock{func() time.Duration { return time.Since(began) }, time.Now}
}

func newRunning(t *testing.T, server *server, identity string) *Lease {
	t.Helper()
	lease := New(Config{
		Client: server, Identity: identity, Timing: RealTiming(), Clock: goClock(),
		TakeOver: func(context.Context) error { return nil }, Taken: func() {},
		IsAwaited: func() bool { return false },
	})
	run(t, lease)
	return lease
}

func free() *server {
	server := &server{}
	server.write(heldBy("x"))
	server.write(func(lease *coordinationv1.Lease) { *lease = *released(lease, time.Unix(0, 0)) })
	return server
}

func TestHoldWaitsUntilItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := free()
		lease := newRunning(t, server, "a")
		if holding, err := lease.Hold(context.Background()); err != nil || holding != 1 || server.holder() != "a" {
			t.Errorf("holding %d, error %v", holding, err)
		}
	})
}

func TestHoldDoesNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &server{}
		server.write(heldBy("x"))
		lease := newRunning(t, server, "a")
		begin := time.Now()
		for range 1000 {
			if _, err := lease.Hold(context.Background()); err == nil {
				t.Fatal("held by two")
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("it waited for %s", took)
		}
	})
}

// hanging is an API server that does not answer until the test ends.
type hanging struct {
	*server
	end chan struct{}
}

func (h hanging) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	select {
	case <-ctx.Done():
	case <-h.end:
	}
	return nil, errors.New("no answer")
}

// kube-scheduler's one loop asks: while it waits no other pod is placed.
func TestHoldWaitsOnceForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timing := RealTiming()
		timing.Retry = 50 * time.Millisecond
		client := hanging{free(), make(chan struct{})}
		lease := New(Config{
			Client: client, Identity: "a", Timing: timing, Clock: goClock(),
			TakeOver: func(context.Context) error { return nil }, Taken: func() {},
			IsAwaited: func() bool { return false },
		})
		run(t, lease)
		t.Cleanup(func() { close(client.end) })
		waited := time.Duration(0)
		for begin := time.Now(); time.Since(begin) < 10*timing.Retry; time.Sleep(time.Millisecond) {
			asked := time.Now()
			if _, err := lease.Hold(context.Background()); err == nil {
				t.Fatal("held without an answer")
			}
			waited += time.Since(asked)
		}
		if waited > timing.Retry {
			t.Errorf("it waited for %s", waited)
		}
	})
}

func TestStopWaitsForBindingsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := free()
		lease := newRunning(t, server, "a")
		holding, err := lease.Hold(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		use, err := lease.Begin(holding)
		if err != nil {
			t.Fatal(err)
		}
		bounded, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		if err := lease.Stop(bounded); err == nil || server.holder() != "a" {
			t.Errorf("error %v, holder %q", err, server.holder())
		}
		if err := use.Permit(context.Background()); err != nil {
			t.Errorf("what has begun is not ended: %v", err)
		}
		if _, err := lease.Begin(holding); !errors.Is(err, errStopping) {
			t.Errorf("error: %v", err)
		}
		if _, err := lease.Hold(context.Background()); !errors.Is(err, errStopping) {
			t.Errorf("error: %v", err)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- lease.Stop(context.Background()) }()
		synctest.Wait()
		ended := time.Now()
		use.End()
		if err := <-stopped; err != nil || server.holder() != "" || time.Since(ended) > 0 {
			t.Errorf("error %v, holder %q, it waited for %s", err, server.holder(), time.Since(ended))
		}
		if err := lease.Stop(context.Background()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestWhoStandsByStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &server{}
		server.write(heldBy("x"))
		if err := newRunning(t, server, "a").Stop(context.Background()); err != nil || server.holder() != "x" {
			t.Errorf("error %v, holder %q", err, server.holder())
		}
	})
}
