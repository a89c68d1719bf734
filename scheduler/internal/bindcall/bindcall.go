// Package bindcall writes a Binding to the API server until its outcome is certain.
//
// Units that are given back while a Binding may still take effect would be had by two pods. So a Binding whose request
// failed in an unclear way is asked after until the API server says what became of it. It does the same as the
// extender's bind/binding_write.py.
package bindcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/binding"
)

const (
	// CallTime is for one request, at our end and in the API server.
	CallTime = 4 * time.Second
	// UncertainTime is how long after it was to be sent a Binding has taken effect, or never will: it leaves within
	// CallTime, the API server drops it after CallTime, and as much is left for what lies between them.
	UncertainTime = 3 * CallTime
	// sendTime is how long a Binding is sent again: then another attempt of the pod does better.
	sendTime     = 2 * CallTime
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
	// maxSent is how many requests are under way at a time. More would wait in the API server, and be dropped there.
	maxSent = 200
)

// ErrBoundBefore is returned for a pod that may have been bound for a while, and is not any more: its kubelet may have
// admitted it.
var ErrBoundBefore = errors.New("the pod may have been bound for a while")

// ErrUnknown is returned where nobody waits any longer for what becomes of a Binding.
var ErrUnknown = errors.New("it is not known whether the pod is bound")

var errChanging = errors.New("somebody changes it again and again while it is being bound")
var errTooLong = errors.New("it took too long")

// Clock is replaced in tests.
type Clock struct {
	Now func() time.Time
	// Sleep returns sooner where ctx ends.
	Sleep func(ctx context.Context, duration time.Duration)
}

// RealClock is the clock of the machine.
func RealClock() Clock {
	return Clock{time.Now, func(ctx context.Context, duration time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(duration):
		}
	}}
}

// Slots limit how many requests are under way at a time.
type Slots chan struct{}

// NewSlots returns those of one API server.
func NewSlots() Slots { return make(Slots, maxSent) }

// Writer writes Bindings to an API server.
type Writer struct {
	API   API
	Clock Clock
	Slots Slots
	// Permit returns an error unless a Binding may be sent now. It is asked before each request.
	Permit func(ctx context.Context) error
}

// Write binds a pod, which was seen unbound as it is, to a node. It returns nil once the pod is surely bound by this
// Binding, and an error once it surely is not, and will not be; ErrBoundBefore is among its causes where it was bound
// meanwhile. Where ctx ends before that is known, ErrUnknown is.
func (w Writer) Write(ctx context.Context, pod *v1.Pod, node string, written binding.Binding) error {
	call := &call{Writer: w, pod: pod, node: node, written: written}
	backoff := firstBackoff
	for {
		done, err := call.send(ctx)
		if !done {
			done, err = call.ask(ctx)
		}
		switch {
		case done:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
		}
		w.Clock.Sleep(ctx, max(backoff, call.retryAfter))
		backoff = min(2*backoff, maxBackoff)
	}
}

// call is one Binding on its way.
type call struct {
	Writer
	pod     *v1.Pod // as it was seen last
	node    string
	written binding.Binding
	// sendUntil is until when it may be sent; zero before the first request.
	sendUntil time.Time
	// uncertainUntil is until when an earlier request may still take effect; zero where none may.
	uncertainUntil time.Time
	isOutdated     bool
	retryAfter     time.Duration
	// failure is why the last request failed.
	failure error
}

// send returns whether it is certain what became of the Binding, and then why it failed.
func (c *call) send(ctx context.Context) (bool, error) {
	if c.isOutdated {
		return false, nil
	}
	if lack := allocation.LackOfRoom(allocation.SizeBesideOurs(c.pod.Annotations), c.written.Room); lack != "" {
		return c.fail(errors.New(lack))
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return c.fail(err)
	}
	defer leave()
	if c.sendUntil.IsZero() {
		c.sendUntil = c.Clock.Now().Add(sendTime)
	}
	if !c.Clock.Now().Before(c.sendUntil) {
		return c.fail(cmp.Or(c.failure, errTooLong))
	}
	if err := c.Permit(ctx); err != nil {
		return c.fail(err)
	}
	sent := c.Clock.Now()
	bounded, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	if err := c.API.Bind(bounded, c.binding()); err != nil {
		return c.refused(err, sent)
	}
	return true, nil
}

// enter waits for one of the slots, and returns what gives it back.
func (c *call) enter(ctx context.Context) (func(), error) {
	select {
	case c.Slots <- struct{}{}:
		return func() { <-c.Slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *call) binding() *v1.Binding {
	return &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.pod.Name, Namespace: c.pod.Namespace, UID: c.pod.UID, ResourceVersion: c.pod.ResourceVersion,
			Annotations: c.written.Annotations,
		},
		Target: v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: c.node},
	}
}

// refused notes how a request failed that was sent at some time. After a conflict the pod has to be read: an earlier
// Binding of ours may be in the way, or the pod was changed.
func (c *call) refused(err error, sent time.Time) (bool, error) {
	c.failure = err
	seconds, _ := apierrors.SuggestsClientDelay(err)
	c.retryAfter = min(time.Duration(seconds)*time.Second, max(0, c.sendUntil.Sub(sent)/2))
	status := apierrors.APIStatus(nil)
	switch {
	case apierrors.IsConflict(err):
		c.isOutdated = true
	case apierrors.IsTooManyRequests(err):
	case errors.As(err, &status) && isRefusal(status.Status().Code):
		return c.fail(err)
	default:
		c.uncertainUntil = sent.Add(UncertainTime)
	}
	return false, nil
}

// isRefusal says whether an API server that answers with code has surely done nothing.
func isRefusal(code int32) bool {
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// fail returns that the Binding has failed, unless an earlier request may have taken effect.
func (c *call) fail(why error) (bool, error) {
	c.failure = why
	if c.uncertainUntil.IsZero() {
		return true, fmt.Errorf("the pod was not bound: %w", why)
	}
	return false, nil
}

// ask reads what became of the pod.
func (c *call) ask(ctx context.Context) (bool, error) {
	leave, err := c.enter(ctx)
	if err != nil {
		return false, nil
	}
	defer leave()
	asked := c.Clock.Now()
	bounded, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	pod, err := c.API.Read(bounded, c.pod.Namespace, c.pod.Name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.UID != c.pod.UID:
		return true, c.gone("gone")
	case err != nil:
		return false, nil
	case pod.Spec.NodeName == "":
		return c.stillUnbound(pod, asked)
	case pod.Spec.NodeName == c.node && c.isOurs(pod):
		return true, nil
	}
	return true, c.gone("bound by somebody else")
}

// stillUnbound decides for a pod that is not bound: it was changed, or the Binding has not taken effect yet, or never
// will.
func (c *call) stillUnbound(pod *v1.Pod, asked time.Time) (bool, error) {
	isChanged := pod.ResourceVersion != c.pod.ResourceVersion
	switch {
	case !asked.Before(c.sendUntil) && !asked.Before(c.uncertainUntil):
		return true, fmt.Errorf("the pod is not bound: %w", c.failure)
	case c.isOutdated && !isChanged && c.uncertainUntil.IsZero(): // the conflict will last: the pod is being deleted
		return c.fail(c.failure)
	case isChanged:
		c.failure = errChanging
	}
	c.pod, c.isOutdated = pod, false
	return false, nil
}

// isOurs says whether the pod carries the allocation. It compares only the node: a plugin may have written another card
// since.
func (c *call) isOurs(pod *v1.Pod) bool {
	if _, written := c.written.Annotations[allocation.Annotation]; !written {
		return true
	}
	given, err := allocation.Read(pod.Annotations[allocation.Annotation], string(c.pod.UID))
	return err == nil && given.Node == c.node
}

func (c *call) gone(what string) error {
	err := fmt.Errorf("the pod is %s: %w", what, c.failure)
	if !c.uncertainUntil.IsZero() {
		return errors.Join(err, ErrBoundBefore)
	}
	return err
}
