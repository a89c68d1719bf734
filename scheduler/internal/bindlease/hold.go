package bindlease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"gpushare.io/scheduler/internal/bindcall"
)

// takeOverTime is for reading all pods of the largest clusters.
const takeOverTime = time.Minute

// lookAfter does what is due. It returns an error where the Lease is needed and not held.
func (l *Lease) lookAfter(ctx context.Context) error {
	switch {
	case l.isNeeded():
		if err := l.ensure(ctx); err != nil {
			return err
		}
		return l.bringUpToDate(ctx)
	case l.isOurs():
		if err := l.release(ctx); err != nil {
			klog.FromContext(ctx).Info("The Lease is not released: whoever binds pods next waits until it expires",
				"reason", err)
		}
	default:
		_, _ = l.read(ctx) // a failure concerns those who need the Lease
	}
	return nil
}

// isOurs says whether the Lease was ours when we wrote it last, however long ago.
func (l *Lease) isOurs() bool { return l.written.holding.holder == l.Identity }

// ensure takes or renews the Lease where that is due.
func (l *Lease) ensure(ctx context.Context) error {
	l.mutex.Lock()
	isFresh := l.lasts(l.Timing.Duration - l.Timing.Renew/2)
	l.mutex.Unlock()
	if isFresh {
		return nil
	}
	err := l.take(ctx)
	if apierrors.IsConflict(err) { // somebody wrote it after we had read it
		err = l.take(ctx)
	}
	return err
}

func (l *Lease) take(ctx context.Context) error {
	before, err := l.read(ctx)
	if err != nil {
		return err
	}
	if err := l.reliedOn(before); err != nil {
		return err
	}
	isNew := l.written == record{} || recordOf(before).holding != l.written.holding
	sent := l.Clock.Steady()
	if err := l.write(ctx, held(before, l.Identity, l.Timing.Duration, l.Clock.Now())); err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.validUntil = sent + l.Timing.Duration
	if isNew {
		l.holding++
		klog.FromContext(ctx).V(2).Info("Took the Lease to bind pods", "lease", Name, "from",
			recordOf(before).holding.holder)
	}
	return nil
}

// reliedOn returns an error while somebody else may rely on the Lease.
func (l *Lease) reliedOn(present *coordinationv1.Lease) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if present == nil && l.lasts(0) {
		return nil // deleted while it was ours
	}
	left, holder := l.observer.left(l.Clock.Steady()).Seconds(), recordOf(present).holding.holder
	switch {
	case left == 0:
		return nil
	case present == nil:
		return fmt.Errorf("the Lease %s was deleted: this scheduler may take it in %.0f s, when nobody relies on it any"+
			" more", Name, left)
	case holder == "":
		return fmt.Errorf("the Lease %s was emptied by somebody while it was held: this scheduler may take it in %.0f s,"+
			" when nobody relies on it any more", Name, left)
	}
	l.validUntil = 0
	return fmt.Errorf("%.250s binds pods: this scheduler takes over in %.0f s, or as soon as the Lease %s is released",
		holder, left, Name)
}

// release gives the Lease back, unless a Binding has begun since: from then on it does not last.
func (l *Lease) release(ctx context.Context) error {
	l.mutex.Lock()
	isFree := l.underWay == 0
	if isFree {
		l.validUntil = 0
	}
	l.mutex.Unlock()
	if !isFree {
		return nil
	}
	present, err := l.read(ctx)
	switch {
	case err != nil:
		return err
	case recordOf(present).holding != l.written.holding:
		l.written = record{}
		return nil
	}
	return l.write(ctx, released(present, l.Clock.Now()))
}

// read returns the Lease, nil where there is none.
func (l *Lease) read(ctx context.Context) (*coordinationv1.Lease, error) {
	bounded, cancel := context.WithTimeout(ctx, bindcall.CallTime)
	defer cancel()
	lease, err := l.Client.Get(bounded, Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the Lease %s, which tells who binds pods: %w", Name, err)
	}
	l.observer.observe(recordOf(lease), l.Clock.Steady())
	return lease, nil
}

func (l *Lease) write(ctx context.Context, lease *coordinationv1.Lease) error {
	bounded, cancel := context.WithTimeout(ctx, bindcall.CallTime)
	defer cancel()
	written, err := l.Client.Update(bounded, lease, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("cannot write the Lease %s, which tells who binds pods: %w", Name, err)
	}
	l.written = recordOf(written)
	l.observer.observe(l.written, l.Clock.Steady())
	return nil
}

// bringUpToDate counts what was bound before. What is read counts for the holding in which the read began.
func (l *Lease) bringUpToDate(ctx context.Context) error {
	l.mutex.Lock()
	holding, isUpToDate := l.holding, l.upToDate == l.holding
	l.mutex.Unlock()
	if isUpToDate {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, takeOverTime)
	defer cancel()
	if err := l.TakeOver(bounded); err != nil {
		return fmt.Errorf("cannot read what others have bound: %w", err)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.upToDate = holding
	return nil
}
