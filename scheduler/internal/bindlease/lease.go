// Package bindlease holds the Lease by which one program at a time binds pods to cards.
//
// Two that bind do not see what each other has reserved, and could give one card away twice. So whoever binds holds the
// Lease gpushare-extender: a scheduler with the plugin, or an extender (its bind/lease.py). It does so by the same rules
// whoever comes before or after it, be that another leader or another engine:
//
//  1. A Binding is sent only while the Lease is surely held for another bindcall.UncertainTime.
//  2. In that time the Binding takes effect, or never will.
//  3. The holder gives the Lease back only while no Binding of its own is under way. Others take it then, or once they
//     have seen no change of it for its duration.
//  4. Who has taken it from another one reads what is bound, as the API server's storage has it, before it binds.
//
// By 1 to 3 all Bindings of a holder have taken effect when the next one takes the Lease, and by 4 the next one counts
// them all. kube-scheduler's leader election decides which replica is asked, and nothing here relies on it: a leader
// releases that Lease while its Bindings are under way, and may go on for a while once it has lost it.
//
// Of a scheduler that is killed the Lease expires. One that is stopped lets its Bindings end first (Stop), so that the
// next one binds at once. Who has nothing to bind gives the Lease back: then nobody waits for the end of a process.
package bindlease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"gpushare.io/scheduler/internal/bindcall"
)

// Name is the name of the Lease.
const Name = "gpushare-extender"

// Client is what is needed of the API server. Update also creates a Lease that is missing.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error)
	Update(
		ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions,
	) (*coordinationv1.Lease, error)
}

// Timing is replaced in tests.
type Timing struct {
	// Uncertain is how long after it was to be sent a Binding has taken effect, or never will.
	Uncertain time.Duration
	// Renew is between two looks at the Lease.
	Renew time.Duration
	// Duration is that of the Lease, in whole seconds: one renewal may fail, and Bindings can be sent until the next.
	Duration time.Duration
	// Idle is how long after its last use the Lease is given back.
	Idle time.Duration
	// Retry is between two attempts to take it.
	Retry time.Duration
}

// RealTiming has the times of the extender's bind/deadlines.py.
func RealTiming() Timing {
	const renew = bindcall.CallTime
	return Timing{
		Uncertain: bindcall.UncertainTime, Renew: renew, Duration: bindcall.UncertainTime + 2*renew,
		Idle: bindcall.UncertainTime, Retry: time.Second,
	}
}

// Config is what a Lease is made of.
type Config struct {
	Client Client
	// Identity is another one after each start of the program.
	Identity string
	Timing   Timing
	Clock    Clock
	// TakeOver counts what is bound, as the API server's storage has it.
	TakeOver func(ctx context.Context) error
	// Taken is told that the Lease is held after Hold has refused somebody.
	Taken func()
	// IsAwaited says whether somebody whom Hold has refused still waits. It must not call methods of the Lease.
	IsAwaited func() bool
}

// Lease is the Lease, and whether it is held. Run works on it; the other methods may be called from several goroutines.
type Lease struct {
	Config

	mutex sync.Mutex
	// validUntil is until when nobody else takes it, counted from before its renewal was sent.
	validUntil time.Duration
	// holding counts how often it was taken after others may have had it.
	holding uint64
	// upToDate is the holding for which what was bound before is counted.
	upToDate uint64
	lastUse  time.Duration
	isUsed   bool // at any time until now
	// underWay is how many Bindings may take effect.
	underWay   int
	isStopping bool
	// refusal is why it is not held, by the last attempt to take it; nil before the first, and when it is held.
	refusal    error
	hasRefused bool
	// round is closed when the attempt ends that is under way, or comes next.
	round chan struct{}

	wake, stopped chan struct{}

	// Of Run alone:

	observer observer
	// written is the Lease as we wrote it last; zero where it is not ours.
	written record
}

// New returns a Lease that is not held. Hold needs Run.
func New(config Config) *Lease {
	return &Lease{
		Config: config, round: make(chan struct{}), wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		observer: observer{identity: config.Identity, duration: config.Timing.Duration},
	}
}

var (
	errStopping = errors.New("this scheduler is being stopped")
	errPending  = errors.New("this scheduler will bind pods in a moment")
	errTaken    = errors.New("somebody else may have bound pods since the cards were chosen")
)

// NotHeldError is returned where a Binding must not be sent now: another one may be binding, or the scheduler is being
// stopped.
type NotHeldError struct{ Cause error }

// Error implements error.
func (e NotHeldError) Error() string { return e.Cause.Error() }

// Unwrap returns why.
func (e NotHeldError) Unwrap() error { return e.Cause }

// Hold returns when pods may be placed. The number is another one when somebody else may have bound pods since the last
// time. It waits for Timing.Retry at most; then, and where another one may be binding, it returns an error. It does so at
// once until the next attempt to take the Lease has ended: the scheduler places no other pod while it waits.
func (l *Lease) Hold(ctx context.Context) (uint64, error) {
	l.mutex.Lock()
	isStopping := l.isStopping
	l.mutex.Unlock()
	if isStopping {
		return 0, errStopping
	}
	return l.hold(ctx)
}

func (l *Lease) hold(ctx context.Context) (uint64, error) {
	timer := time.NewTimer(l.Timing.Retry)
	defer timer.Stop()
	for {
		holding, round, err := l.permit()
		if round == nil {
			return holding, err
		}
		l.look()
		select {
		case <-round:
		case <-timer.C:
			return 0, l.refuse(err)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// permit returns an error where no Binding may be sent, and before the first attempt to take the Lease what is closed when
// that ends.
func (l *Lease) permit() (uint64, <-chan struct{}, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lastUse, l.isUsed = l.Clock.Steady(), true
	switch {
	case l.lasts(l.Timing.Uncertain) && l.upToDate == l.holding:
		return l.holding, nil, nil
	case l.refusal == nil:
		return 0, l.round, errPending
	}
	l.hasRefused = true
	return 0, nil, l.refusal
}

// refuse notes that somebody has waited in vain: others need not.
func (l *Lease) refuse(err error) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.refusal, l.hasRefused = err, true
	return err
}

// lasts says whether nobody else takes the Lease for some time.
func (l *Lease) lasts(duration time.Duration) bool { return l.validUntil-l.Clock.Steady() >= duration }

// Use is a Binding that is about to be sent, or may take effect.
type Use struct {
	lease   *Lease
	holding uint64
}

// Begin says that a Binding is about to be sent, for a pod that was placed in a holding: the Lease is not given back
// before End. It returns a NotHeldError where the scheduler is being stopped.
func (l *Lease) Begin(holding uint64) (Use, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.isStopping {
		return Use{}, NotHeldError{errStopping}
	}
	l.underWay++
	return Use{l, holding}, nil
}

// Permit returns a NotHeldError where the Binding must not be sent now.
func (u Use) Permit(ctx context.Context) error {
	holding, err := u.lease.hold(ctx)
	if err == nil && holding != u.holding {
		err = errTaken
	}
	if err != nil {
		return NotHeldError{err}
	}
	return nil
}

// End says that it is certain what became of the Binding.
func (u Use) End() {
	u.lease.mutex.Lock()
	defer u.lease.mutex.Unlock()
	u.lease.underWay--
	u.lease.lastUse = u.lease.Clock.Steady()
	if u.lease.isStopping && u.lease.underWay == 0 {
		u.lease.look()
	}
}

// Stop lets no further Binding begin, and returns once those under way have ended and the Lease is given back. Where
// ctx ends before, the Lease has to expire.
func (l *Lease) Stop(ctx context.Context) error {
	l.mutex.Lock()
	l.isStopping = true
	l.mutex.Unlock()
	l.look()
	select {
	case <-l.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the Lease %s is kept until it expires: %w", Name, ctx.Err())
	}
}

// look has Run look at the Lease now.
func (l *Lease) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run takes the Lease when it is asked for, renews it while it is used, gives it back afterwards, and watches it
// otherwise, until ctx ends.
func (l *Lease) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.lookAfter(ctx)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("No pod with cards is bound", "reason", err)
		}
		timer := time.NewTimer(l.ended(err))
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// ended notes what became of an attempt, and returns when the next one is due.
func (l *Lease) ended(err error) time.Duration {
	l.mutex.Lock()
	l.refusal = err
	close(l.round)
	l.round = make(chan struct{})
	isHeld := l.lasts(l.Timing.Uncertain) && l.upToDate == l.holding
	isTaken := isHeld && l.hasRefused
	l.hasRefused = l.hasRefused && !isHeld
	if l.isStopping && l.underWay == 0 && !l.isOurs() {
		select {
		case <-l.stopped:
		default:
			close(l.stopped)
		}
	}
	l.mutex.Unlock()
	if isTaken {
		l.Taken()
	}
	if err != nil {
		return l.Timing.Retry
	}
	return l.Timing.Renew
}

// isNeeded says whether the Lease has to be held: while it is used, and while somebody waits whom Hold has refused.
func (l *Lease) isNeeded() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	isUsed := l.isUsed && l.Clock.Steady()-l.lastUse < l.Timing.Idle
	return l.underWay > 0 || !l.isStopping && (isUsed || l.hasRefused && l.IsAwaited())
}
